package httpretry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// mortal is a connection that can die between two requests: the next Write fails
// before a byte is out, as on a connection that the server has closed.
type mortal struct {
	net.Conn
	dead *atomic.Bool
}

func (c mortal) Write(p []byte) (int, error) {
	if c.dead.Load() {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return c.Conn.Write(p)
}

// stale is a server that counts requests by their bodies, and a transport whose pool
// holds n connections to it that are dead.
type stale struct {
	*http.Transport
	url string

	mu       sync.Mutex
	received map[string]int
}

func newStale(t *testing.T, n int) *stale {
	t.Helper()
	s := &stale{received: map[string]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	release := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/warm" { // all at once, so that each has a connection of its own
			all.Done()
			<-release
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.received[string(body)]++
		s.mu.Unlock()
		fmt.Fprint(w, "ok")
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	s.url = "http://" + l.Addr().String()

	dead := &atomic.Bool{}
	s.Transport = &http.Transport{
		MaxIdleConnsPerHost: n,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil || dead.Load() {
				return c, err
			}
			return mortal{c, dead}, nil
		},
	}
	t.Cleanup(s.CloseIdleConnections)
	all.Add(n)
	var warm sync.WaitGroup
	for range n {
		warm.Go(func() {
			resp, err := s.RoundTrip(newRequest(t, http.MethodGet, s.url+"/warm", "", ""))
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	all.Wait()
	close(release)
	warm.Wait()
	dead.Store(true)
	return s
}

// A POST without a key that meets dead connections, and of which not a byte was
// written, goes out on the first one that lives, as it does with net/http alone. The
// server gets it once, and no retry is charged.
func TestWhatWasNotWrittenGoesOut(t *testing.T) {
	const connections = 40
	for _, tc := range []struct {
		name   string
		method string
		body   func(text string) io.Reader
		plain  bool // net/http alone sends it, too
	}{
		{"POST", http.MethodPost, func(text string) io.Reader { return strings.NewReader(text) }, true},
		{"PATCH", http.MethodPatch, func(text string) io.Reader { return strings.NewReader(text) }, true},
		{"DELETE", http.MethodDelete, func(text string) io.Reader { return strings.NewReader(text) }, true},
		{"PUT, streamed", http.MethodPut, func(text string) io.Reader { return struct{ io.Reader }{strings.NewReader(text)} }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, over := range []string{"net/http", "forbear"} {
				s := newStale(t, connections)
				var rt http.RoundTripper = s.Transport
				rec := &counter{}
				if over == "forbear" {
					r, err := forbear.New("payments", fast, forbear.WithObserver(rec.observer()))
					if err != nil {
						t.Fatal(err)
					}
					rt = httpretry.NewTransport(rt, r)
				}
				good := 0
				for i := range connections {
					text := fmt.Sprintf("order %d", i)
					req, err := http.NewRequestWithContext(t.Context(), tc.method, s.url, tc.body(text))
					if err != nil {
						t.Fatal(err)
					}
					if resp, err := rt.RoundTrip(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						good++
					} else if over == "forbear" || tc.plain {
						t.Errorf("%s: %v", over, err)
					}
				}
				for body, n := range s.received {
					if n != 1 {
						t.Errorf("%s: %q was received %d times", over, body, n)
					}
				}
				if len(s.received) != good {
					t.Errorf("%s: %d succeeded, %d were received", over, good, len(s.received))
				}
				if sent := rec.n.Load(); over == "forbear" && sent != connections {
					t.Errorf("%d attempts for %d calls", sent, connections)
				}
			}
		})
	}
}

// A layer in between that repeats a POST by itself knows no such rule: what it sends
// again is stopped.
func TestRepeatedPostsAreStopped(t *testing.T) {
	var requests atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // reads a request and hangs up
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				requests.Add(1)
			}
			_ = c.Close()
		}
	}()
	again := roundTrip(func(req *http.Request) (*http.Response, error) {
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			return resp, nil
		}
		return http.DefaultTransport.RoundTrip(req)
	})
	_, err = httpretry.NewTransport(again, quiet(t, fast)).
		RoundTrip(newRequest(t, http.MethodPost, "http://"+l.Addr().String(), "order", ""))
	if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Reason != forbear.ReasonNoKey || requests.Load() != 1 {
		t.Errorf("received %d times, %v; want once, and no key to repeat it with", requests.Load(), err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
