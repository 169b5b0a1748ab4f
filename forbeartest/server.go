package forbeartest

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// Server is an HTTP/1.1 server on the loopback that follows a script and
// records what reaches it. It uses real sockets and real time: for virtual
// time take a [RoundTripper]. It is safe for concurrent use.
type Server struct {
	// URL is the server's address, without a trailing slash.
	URL string
	script

	http *httptest.Server
	quit context.CancelFunc
	once sync.Once
}

// NewServer starts a server that ends with the test. Without steps it responds
// 200.
func NewServer(t testing.TB, steps ...Step) *Server {
	t.Helper()
	s := StartServer(steps...)
	t.Cleanup(s.Close)
	return s
}

// StartServer is [NewServer] outside of tests; the caller closes it.
func StartServer(steps ...Step) *Server {
	ctx, quit := context.WithCancel(context.Background())
	s := &Server{script: script{steps: steps}, quit: quit}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.http.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, new(atomic.Int64))
	}
	s.http.Start()
	s.URL = s.http.URL
	return s
}

// connKey finds the number of requests that a connection has carried.
type connKey struct{}

// Client returns a client of its own pool of connections, which [Server.Close]
// closes.
func (s *Server) Client() *http.Client { return s.http.Client() }

// Close stops the server and ends the requests that hang. It may be called
// twice.
func (s *Server) Close() {
	s.once.Do(func() {
		s.quit()
		s.http.Close()
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	served := r.Context().Value(connKey{}).(*atomic.Int64)
	reused := served.Add(1) > 1
	step := s.take(r, reused)
	if step.Delay > 0 && !wait.Sleep(r.Context(), step.Delay) {
		reset(w)
		return
	}
	switch step.Break {
	case BreakNone:
		respond(w, step)
	case BreakOnReuse:
		if reused {
			reset(w)
			return
		}
		respond(w, step)
	case BreakHang:
		<-r.Context().Done()
		reset(w)
	case BreakBeforeHeaders:
		reset(w)
	case BreakAfterHeaders:
		partial(w, step, 0)
	case BreakMidBody:
		partial(w, step, (len(step.Body)+1)/2)
	}
}

// respond sends the whole response of a step.
func respond(w http.ResponseWriter, step Step) {
	maps.Copy(w.Header(), step.Header)
	w.WriteHeader(step.status())
	// The client may have left; its test knows.
	_, _ = w.Write([]byte(step.Body))
}

// reset closes the connection with a reset instead of an orderly end.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		abort(conn)
	}
}

func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a plain close will do as well
	}
	_ = conn.Close()
}

// partial sends the headers and n bytes of the body, and resets.
func partial(w http.ResponseWriter, step Step, n int) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer abort(conn)
	if err := writePartial(buf.Writer, step, n); err != nil {
		return
	}
	// Let the peer read what was sent before the reset overtakes it.
	time.Sleep(10 * time.Millisecond)
}

func writePartial(w *bufio.Writer, step Step, n int) error {
	code := step.status()
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", code, http.StatusText(code), len(step.Body))
	if err := step.Header.Write(w); err != nil {
		return err
	}
	w.WriteString("\r\n" + step.Body[:n])
	return w.Flush()
}
