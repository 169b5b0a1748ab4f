package smuggling

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// hangUp at the end of a reply closes the connection after it. What the reply is
// without it stays on a connection that the gateway may use again.
const hangUp = "\x00hang up\x00"

// fine is the reply to a request that no reply is scripted for.
const fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain\r\n\r\nfine"

// site is the upstream: it keeps what it reads and sends what it was told to.
type site struct {
	listener net.Listener
	replies  []string // to its requests in turn; fine when there are no more
	running  sync.WaitGroup

	mu       sync.Mutex
	requests []message // those that came whole
	raw      []string  // all bytes, by connection
	strict   error     // the first request that no strict reader accepts
}

func newSite(t testing.TB, replies []string) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{listener: l, replies: replies}
	s.running.Go(s.accept)
	return s
}

func (s *site) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() {
			defer c.Close()
			s.serve(c)
		})
	}
}

// recording keeps the bytes of one connection.
type recording struct {
	net.Conn
	all strings.Builder
}

func (r *recording) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.all.Write(p[:n])
	return n, err
}

// serve reads requests, until one is broken or the gateway goes.
func (s *site) serve(c net.Conn) {
	rec := &recording{Conn: c}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw = append(s.raw, rec.all.String())
	}()
	in := bufio.NewReader(expecting{rec})
	for {
		m, err := readMessage(in, "")
		if errors.Is(err, errStrict) {
			s.note(err)
		}
		if err != nil {
			return
		}
		reply, hang := strings.CutSuffix(s.received(m), hangUp)
		if _, err := io.WriteString(c, reply); err != nil || hang {
			return
		}
		if strings.Contains(reply, " 101 ") {
			_, _ = io.Copy(c, in) // the protocol switched to is an echo
			return
		}
	}
}

// expecting asks for the content of a request that waits for leave to send it.
type expecting struct{ *recording }

func (e expecting) Read(p []byte) (int, error) {
	n, err := e.recording.Read(p)
	if text := strings.ToLower(string(p[:n])); strings.Contains(text, "expect: 100-continue") && strings.HasSuffix(text, "\r\n\r\n") {
		_, _ = io.WriteString(e.Conn, "HTTP/1.1 100 Continue\r\n\r\n")
	}
	return n, err
}

func (s *site) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strict == nil {
		s.strict = err
	}
}

// received keeps a request and returns the reply to it. The requests around a
// probe, which name themselves, take none of its replies.
func (s *site) received(m message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, m)
	if around(m) || len(s.replies) == 0 {
		return fine
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply
}

// around reports whether a request is none of the probe's own.
func around(m message) bool {
	return strings.HasPrefix(m.head[0], "GET /base/first ") || strings.HasPrefix(m.head[0], "GET /base/again ")
}

// end waits until the gateway has let go of every connection.
func (s *site) end() {
	_ = s.listener.Close()
	s.running.Wait()
}
