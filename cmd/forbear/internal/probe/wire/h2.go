package wire

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"io"
	"net/http"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// stream is what is known of a request on an HTTP/2 connection.
type stream struct {
	a    *Arrival
	body bytes.Buffer
}

// serve2 serves HTTP/2, one request after another: what a step does to a connection is done
// with the frames of RFC 9113.
func (s *Server) serve2(conn *tls.Conn, number int) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if f.WriteSettings() != nil {
		return
	}
	streams := map[uint32]*stream{}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		id, over := frame.Header().StreamID, false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			a := &Arrival{Conn: number, At: s.Now(), Proto: "HTTP/2.0", Header: http.Header{}}
			a.Method, a.Target = frame.PseudoValue("method"), frame.PseudoValue("path")
			for _, h := range frame.RegularFields() {
				a.Header.Add(h.Name, h.Value)
			}
			streams[id], over = &stream{a: a}, frame.StreamEnded()
		case *http2.DataFrame:
			if st := streams[id]; st != nil && st.body.Len() < maxBody {
				st.body.Write(frame.Data())
				over = frame.StreamEnded()
			}
			if n := uint32(len(frame.Data())); n > 0 {
				err = cmp.Or(f.WriteWindowUpdate(0, n), f.WriteWindowUpdate(id, n))
			}
		}
		if err != nil {
			return
		}
		if st := streams[id]; over && st != nil {
			delete(streams, id)
			st.a.Body, st.a.Length, _ = sum(&st.body)
			step := s.arrived(st.a)
			if step == nil || !step(&Exchange{Arrival: st.a, conn: conn, s: s, framer: f, stream: id}) {
				return
			}
		}
	}
}

// respond2 writes a response of HTTP/2.
func (x *Exchange) respond2(code int, header [][2]string, body string) bool {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(code)})
	for _, h := range header {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	x.done()
	return cmp.Or(
		x.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: x.stream, BlockFragment: b.Bytes(), EndHeaders: true}),
		x.framer.WriteData(x.stream, true, []byte(body)),
	) == nil
}

// RefuseStream says that the request was not processed (RFC 9113 section 8.7).
func RefuseStream(x *Exchange) bool {
	if x.framer == nil {
		return Reset(x)
	}
	x.done()
	return x.framer.WriteRSTStream(x.stream, http2.ErrCodeRefusedStream) == nil
}

// GoAway says that neither this request nor a later one was processed on this connection
// (RFC 9113 section 6.8), and closes it.
func GoAway(x *Exchange) bool {
	if x.framer != nil {
		x.done()
		_ = x.framer.WriteGoAway(0, http2.ErrCodeNo, nil)
		return false
	}
	return Close(x)
}
