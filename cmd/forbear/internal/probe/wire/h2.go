package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"hash"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// What a client may have open at a time on an HTTP/2 connection, and send as headers.
const (
	maxStreams    = 100
	maxHeaderList = 64 << 10
)

// session is an HTTP/2 connection. Its frames are read in one place and written by whatever
// a step does, so that a stream without a response keeps nothing else waiting.
type session struct {
	s      *Server
	conn   net.Conn
	number int
	framer *http2.Framer
	latest uint32 // the stream that was opened last

	write sync.Mutex

	mu      sync.Mutex
	streams map[uint32]*stream
}

// stream is what is known of a request on an HTTP/2 connection.
type stream struct {
	a    *Arrival
	body hash.Hash
	over bool          // it is complete: nothing more belongs to it
	gone chan struct{} // closed when the client has reset it, or its connection is over
}

// serve2 serves HTTP/2: what a step does to a connection is done with the frames of RFC 9113.
func (s *Server) serve2(conn net.Conn, in io.Reader, number int) {
	if _, err := io.ReadFull(in, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	c := &session{s: s, conn: conn, number: number, framer: http2.NewFramer(conn, in), streams: map[uint32]*stream{}}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.framer.MaxHeaderListSize = maxHeaderList
	c.framer.SetMaxReadFrameSize(16 << 10)
	c.framer.SetReuseFrames()
	defer c.end()
	if c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams}) != nil {
		return
	}
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil || !c.take(frame) {
			return
		}
	}
}

// take deals with a frame. It reports whether the connection goes on.
func (c *session) take(frame http2.Frame) (goesOn bool) {
	id := frame.Header().StreamID
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		return frame.IsAck() || c.writes(func(f *http2.Framer) error { return f.WriteSettingsAck() })
	case *http2.PingFrame:
		return frame.IsAck() || c.writes(func(f *http2.Framer) error { return f.WritePing(true, frame.Data) })
	case *http2.MetaHeadersFrame:
		return c.opens(id, frame) && (!frame.StreamEnded() || c.arrived(id))
	case *http2.DataFrame:
		return c.data(id, frame) && (!frame.StreamEnded() || c.arrived(id))
	case *http2.RSTStreamFrame:
		c.drop(id)
	}
	return true
}

// opens notes a request. Headers of a stream that is known are trailers.
func (c *session) opens(id uint32, frame *http2.MetaHeadersFrame) bool {
	if id <= c.latest {
		return true
	}
	c.latest = id
	a := &Arrival{Conn: c.number, At: c.s.Now(), Proto: "HTTP/2.0", Header: http.Header{}}
	a.Method, a.Target = frame.PseudoValue("method"), frame.PseudoValue("path")
	for _, h := range frame.RegularFields() {
		a.Header.Add(h.Name, h.Value)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame.Truncated || len(c.streams) == maxStreams {
		return false
	}
	c.streams[id] = &stream{a: a, body: sha256.New(), gone: make(chan struct{})}
	return true
}

// data reads a part of a body, and lets the client send as much again.
func (c *session) data(id uint32, frame *http2.DataFrame) bool {
	if st := c.stream(id); st != nil && !st.over {
		st.body.Write(frame.Data())
		if st.a.Length += int64(len(frame.Data())); st.a.Length > maxBody {
			return false
		}
	}
	n := frame.Length // padding counts, too
	return n == 0 || c.writes(func(f *http2.Framer) error {
		return cmp.Or(f.WriteWindowUpdate(0, n), f.WriteWindowUpdate(id, n))
	})
}

// arrived does to a request that is complete what the script says. The connection is read on
// meanwhile.
func (c *session) arrived(id uint32) bool {
	st := c.stream(id)
	if st == nil || st.over {
		return true
	}
	st.over = true
	st.a.Body = digest(st.body)
	step := c.s.arrived(st.a)
	if step == nil {
		return false
	}
	c.s.wg.Go(func() {
		if !step(&Exchange{Arrival: st.a, conn: c.conn, s: c.s, session: c, stream: id, gone: st.gone}) {
			_ = plain(c.conn).Close()
		}
		c.drop(id)
	})
	return true
}

func (c *session) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// drop forgets a stream that is over.
func (c *session) drop(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st := c.streams[id]; st != nil {
		close(st.gone)
		delete(c.streams, id)
	}
}

// end ends what waits for the client, which is gone.
func (c *session) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, st := range c.streams {
		close(st.gone)
		delete(c.streams, id)
	}
}

// writes writes frames. It reports whether that has succeeded.
func (c *session) writes(frames func(f *http2.Framer) error) bool {
	c.write.Lock()
	defer c.write.Unlock()
	return frames(c.framer) == nil
}

// header writes the header or the trailers of a response.
func (x *Exchange) header(fields [][2]string, end bool) bool {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	enc.SetMaxDynamicTableSize(0) // each is read by itself
	for _, h := range fields {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	return x.session.writes(func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: x.stream, BlockFragment: b.Bytes(), EndHeaders: true, EndStream: end})
	})
}

// data writes a part of a body.
func (x *Exchange) data(part string, end bool) bool {
	return x.session.writes(func(f *http2.Framer) error { return f.WriteData(x.stream, end, []byte(part)) })
}

// respond2 writes a response of HTTP/2.
func (x *Exchange) respond2(code int, header [][2]string, body string) bool {
	x.done()
	return x.header(append([][2]string{{":status", strconv.Itoa(code)}}, header...), false) && x.data(body, true)
}

// RefuseStream says that the request was not processed (RFC 9113 section 8.7).
func RefuseStream(x *Exchange) bool {
	if x.session == nil {
		return Reset(x)
	}
	x.done()
	return x.session.writes(func(f *http2.Framer) error { return f.WriteRSTStream(x.stream, http2.ErrCodeRefusedStream) })
}

// GoAway says that neither this request nor a later one was processed on this connection
// (RFC 9113 section 6.8), and closes it.
func GoAway(x *Exchange) bool {
	if x.session != nil {
		x.done()
		x.session.writes(func(f *http2.Framer) error { return f.WriteGoAway(0, http2.ErrCodeNo, nil) })
		return false
	}
	return Close(x)
}
