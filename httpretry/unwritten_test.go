package httpretry_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
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
			for _, over := range []string{"net/http", "forbear", "forbear and a layer"} {
				s := newStale(t, connections)
				var rt http.RoundTripper = s.Transport
				if over == "forbear and a layer" {
					rt = declared{rt, s.Transport}
				}
				rec := &counter{}
				if over != "net/http" {
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
					} else if over != "net/http" || tc.plain {
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
				if sent := rec.n.Load(); over != "net/http" && sent != connections {
					t.Errorf("%d attempts for %d calls", sent, connections)
				}
			}
		})
	}
}

// declared is a layer that hands each request to one transport, and says to which.
type declared struct {
	http.RoundTripper
	below *http.Transport
}

func (d declared) Underlying() *http.Transport { return d.below }

// A POST that was written is received once, whoever would send it again: a layer in
// between, traced or not, whatever the policy says of what was not sent; or net/http,
// which takes a key that forbear made, and one without a value, for leave to repeat.
func TestWrittenPostsAreSentOnce(t *testing.T) {
	repeating := func(base http.RoundTripper, traced bool) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			if traced { // hides the second RoundTrip from a trace above
				req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{}))
			}
			if resp, err := base.RoundTrip(req); err == nil {
				return resp, nil
			}
			req.Body, _ = req.GetBody()
			return base.RoundTrip(req)
		})
	}
	unsent := fast
	unsent.RetryUnsent = true
	for _, tc := range []struct {
		name   string
		policy forbear.Policy
		layer  func(http.RoundTripper) http.RoundTripper
		header []string // the key; nil for none
	}{
		{"a layer that repeats", fast, func(base http.RoundTripper) http.RoundTripper { return repeating(base, false) }, nil},
		{"a layer that repeats and is traced", fast, func(base http.RoundTripper) http.RoundTripper { return repeating(base, true) }, nil},
		{"a layer that repeats, and retry_unsent", unsent, func(base http.RoundTripper) http.RoundTripper { return repeating(base, false) }, nil},
		{"a key without a value", fast, nil, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const connections = 5
			s := newHangUp(t)
			base := &http.Transport{MaxIdleConnsPerHost: connections}
			t.Cleanup(base.CloseIdleConnections)
			s.warm(t, base, connections)
			var next http.RoundTripper = base
			if tc.layer != nil {
				next = tc.layer(base)
			}
			req := newRequest(t, http.MethodPost, "http://"+s.Addr().String(), "order", "")
			if tc.header != nil {
				req.Header[httpretry.HeaderKey] = tc.header
			}
			resp, err := httpretry.NewTransport(next, quiet(t, tc.policy)).RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if n := s.hungUp.Load(); n != 1 || err == nil {
				t.Errorf("received %d times by connections that died, %v; want once, and an error", n, err)
			}
		})
	}
}

// With a key that forbear makes, each send is an attempt: net/http would repeat it.
func TestGeneratedKeysAreSeenByTheGuard(t *testing.T) {
	const connections = 5
	s := newHangUp(t)
	base := &http.Transport{MaxIdleConnsPerHost: connections}
	t.Cleanup(base.CloseIdleConnections)
	s.warm(t, base, connections)
	p := fast
	p.Keys = forbear.KeyGenerate
	rec := &counter{}
	r, err := forbear.New("payments", p, forbear.WithObserver(rec.observer()))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpretry.NewTransport(base, r).RoundTrip(newRequest(t, http.MethodPost, "http://"+s.Addr().String(), "order", ""))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if sends := s.hungUp.Load() + 1; sends != rec.n.Load() || sends > 4 {
		t.Errorf("%d sends, %d attempts", sends, rec.n.Load())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
