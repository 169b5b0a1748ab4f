package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peer is a client of HTTP/2 that writes frames by hand.
type peer struct {
	*http2.Framer
	t *testing.T
}

// listen starts a server that does the same to each request.
func listen(t *testing.T, script Script) *Server {
	t.Helper()
	s, err := Listen(script, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func always(step Step) Script { return func(*Arrival) Step { return step } }

func dial(t *testing.T, s *Server) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	p := &peer{http2.NewFramer(conn, conn), t}
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = p.WriteSettings()
	return p
}

// call opens a stream. value is that of a header.
func (p *peer) call(id uint32, end bool, value string) {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/a.B/C"}, {":authority", "a"}, {"x", value}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	block := b.Bytes()
	first := block[:min(len(block), 16<<10)]
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: end, EndHeaders: len(first) == len(block)})
	for block = block[len(first):]; len(block) > 0; {
		next := block[:min(len(block), 16<<10)]
		block = block[len(next):]
		_ = p.WriteContinuation(id, len(block) == 0, next)
	}
}

// until reads frames up to one that is wanted.
func (p *peer) until(what string, wanted func(http2.Frame) bool) {
	p.t.Helper()
	for {
		frame, err := p.ReadFrame()
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		if wanted(frame) {
			return
		}
	}
}

// ends reads up to the end of the connection, and fails where there is none.
func (p *peer) ends() {
	p.t.Helper()
	for {
		_, err := p.ReadFrame()
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			p.t.Fatal("the connection goes on")
		}
		if err != nil {
			return
		}
	}
}

// response waits for the end of a stream.
func (p *peer) response(id uint32) {
	p.t.Helper()
	p.until("a response", func(f http2.Frame) bool {
		return f.Header().StreamID == id && f.Header().Flags.Has(http2.FlagHeadersEndStream)
	})
}

// TestHangOfAStream: a stream without a response keeps nothing else waiting, and a client
// that has had enough of it is seen to send again on the same connection.
func TestHangOfAStream(t *testing.T) {
	s := listen(t, func(a *Arrival) Step {
		if a.Number == 1 {
			return Hang
		}
		return GRPC(14)
	})
	p := dial(t, s)
	p.call(1, true, "")
	_ = p.WritePing(false, [8]byte{1})
	p.until("a ping's response", func(f http2.Frame) bool { ping, ok := f.(*http2.PingFrame); return ok && ping.IsAck() })
	_ = p.WriteRSTStream(1, http2.ErrCodeCancel)
	p.call(3, true, "")
	p.response(3)
	_, list := s.Seen()
	for range 100 { // the stream notices by itself
		if _, list = s.Seen(); list[0].Gone > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(list) != 2 || list[0].Gone == 0 || list[0].Done != 0 || list[1].Conn != 1 || list[1].Done == 0 {
		t.Errorf("%+v", list)
	}
}

// TestHangUntilTheEnd: what the server ends is not taken for the client's doing.
func TestHangUntilTheEnd(t *testing.T) {
	s := listen(t, always(Hang))
	p := dial(t, s)
	p.call(1, true, "")
	<-s.First()
	for range 200 {
		if _, list := s.Seen(); len(list) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.Close()
	if _, list := s.Seen(); len(list) != 1 || list[0].Gone != 0 {
		t.Errorf("%+v", list)
	}
}

// TestBodies: what a request has is known to its end, and its trailers are no other request.
func TestBodies(t *testing.T) {
	s := listen(t, always(GRPC(0)))
	p := dial(t, s)
	p.call(1, false, "")
	_ = p.WriteData(1, false, []byte("one"))
	_ = p.WriteDataPadded(1, false, []byte("two"), make([]byte, 9))
	p.call(1, true, "a trailer")
	p.response(1)
	p.call(3, true, "")
	p.response(3)
	_, list := s.Seen()
	if len(list) != 2 || list[0].Length != 6 || list[0].Body == list[1].Body || list[0].Target != "/a.B/C" || list[0].Header.Get("X") != "" {
		t.Errorf("%+v", list)
	}
}

// TestHostileClients: a client cannot have the server keep more than is bounded, nor stop it.
func TestHostileClients(t *testing.T) {
	for name, attack := range map[string]func(p *peer){
		"streams that are never complete": func(p *peer) {
			for i := range uint32(2 * maxStreams) {
				p.call(2*i+1, false, "")
			}
		},
		"streams without a response": func(p *peer) {
			for i := range uint32(2 * maxStreams) {
				p.call(2*i+1, true, "")
			}
		},
		"long headers": func(p *peer) { p.call(1, true, strings.Repeat("x", 4*maxHeaderList)) },
		"a long body": func(p *peer) {
			p.call(1, false, "")
			for range maxBody/(16<<10) + 2 {
				if p.WriteData(1, false, make([]byte, 16<<10)) != nil {
					return
				}
			}
		},
		"a frame that is too long": func(p *peer) { _ = p.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<20)) },
		"headers that cannot be read": func(p *peer) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, always(Hang))
			p := dial(t, s)
			attack(p)
			p.ends()
			if _, list := s.Seen(); len(list) > maxStreams {
				t.Errorf("%d requests", len(list))
			}
			next := dial(t, s)
			next.call(1, true, "")
			_ = next.WritePing(false, [8]byte{})
			next.until("a ping's response", func(f http2.Frame) bool { ping, ok := f.(*http2.PingFrame); return ok && ping.IsAck() })
		})
	}
}

// TestOddFrames: what is of no stream, or of one that is over, changes nothing.
func TestOddFrames(t *testing.T) {
	s := listen(t, always(GRPC(0)))
	p := dial(t, s)
	_ = p.WriteRSTStream(9, http2.ErrCodeCancel)
	_ = p.WriteData(7, true, []byte("of nothing"))
	_ = p.WriteWindowUpdate(0, 10)
	p.call(11, true, "")
	p.response(11)
	p.call(11, true, "again")
	p.call(5, true, "of before")
	_ = p.WriteData(11, true, nil)
	p.call(13, true, "")
	p.response(13)
	if _, list := s.Seen(); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}

// TestHTTP1AtTheSamePort: one listener speaks both, and tells them by their first bytes.
func TestHTTP1AtTheSamePort(t *testing.T) {
	s := listen(t, always(Status(http.StatusTeapot)))
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	p := dial(t, s)
	p.call(1, true, "")
	p.response(1)
	_, list := s.Seen()
	if resp.StatusCode != http.StatusTeapot || len(list) != 2 || list[0].Proto != "HTTP/1.1" || list[1].Proto != "HTTP/2.0" {
		t.Errorf("%d, %+v", resp.StatusCode, list)
	}
}
