package httpretry_test

import (
	"bytes"
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
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// pipes is a listener whose connections are made in memory, so that net/http's own
// server and transport run in a bubble of synctest.
type pipes struct {
	conns chan net.Conn
	close func()
}

func (l pipes) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipes) Close() error   { l.close(); return nil }
func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }

// piped serves h in memory, and returns the transport that reaches it.
func piped(t *testing.T, h http.HandlerFunc) *http.Transport {
	t.Helper()
	conns := make(chan net.Conn)
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(pipes{conns, sync.OnceFunc(func() { close(conns) })}) }()
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		conns <- server
		return client, nil
	}}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = s.Close()
	})
	return tr
}

// drip gives its pieces one by one, each after a pause.
type drip struct {
	pause time.Duration
	piece string
	left  int
	end   error
}

func (d *drip) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, d.end
	}
	time.Sleep(d.pause)
	d.left--
	return copy(p, d.piece), nil
}

// The time of an attempt is the server's: it runs until the headers of its response,
// and not while the caller sends. A body that stands still ends the attempt, and who
// let it stand still has to answer for it.
func TestSlowUploads(t *testing.T) {
	const s = time.Second
	type uploads struct {
		name   string
		policy forbear.Policy
		body   func() io.Reader
		serve  func(w http.ResponseWriter, r *http.Request) // after the body was counted
		read   bool                                         // the server reads the body
		err    error
		sends  int64
		failed bool // the dependency is blamed
		took   time.Duration
	}
	policy := forbear.Policy{PerAttempt: 2 * s, BodyIdle: 5 * s, MaxRetries: 1, Backoff: forbear.Backoff{Base: 1, Cap: 1}}
	slow := func(pause time.Duration, pieces int) func() io.Reader {
		return func() io.Reader { return &drip{pause, strings.Repeat("x", 1000), pieces, io.EOF} }
	}
	wait := func(d time.Duration) func(http.ResponseWriter, *http.Request) {
		return func(http.ResponseWriter, *http.Request) { time.Sleep(d) }
	}
	never := policy
	never.BodyIdle = -1
	for _, tc := range []uploads{
		{"a slow caller", policy, slow(4*s, 10), wait(0), true, nil, 1, false, 40 * s},
		{"a slow caller, and a server that takes its time", policy, slow(4*s, 2), wait(s), true, nil, 1, false, 9 * s},
		{"a caller who stands still", policy, slow(6*s, 2), wait(0), true, nil, 1, false, 6 * s}, // when its Read returns
		{"a caller who may stand still", never, slow(60*s, 2), wait(0), true, nil, 1, false, 120 * s},
		{"a server that does not respond after the upload", policy, slow(4*s, 2), wait(10 * s), true, context.DeadlineExceeded, 2, true, 0},
		{"a server that does not take the body", policy, slow(0, 1000), wait(20 * s), false, context.DeadlineExceeded, 2, true, 10 * s},
		{"a large body in memory", policy, func() io.Reader { return bytes.NewReader(make([]byte, 1<<20)) }, wait(s), true, nil, 1, false, s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sends, received atomic.Int64
				below := piped(t, func(w http.ResponseWriter, r *http.Request) {
					sends.Add(1)
					if tc.read {
						n, _ := io.Copy(io.Discard, r.Body)
						received.Store(n)
					}
					tc.serve(w, r)
				})
				r := quiet(t, tc.policy)
				// A PUT may be repeated; what cannot be is its body, once longer than is kept.
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://files.test/", tc.body())
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				resp, err := httpretry.NewTransport(below, r).RoundTrip(req)
				took := time.Since(began)
				if err == nil {
					_ = resp.Body.Close()
				}
				stalled := tc.name == "a caller who stands still"
				if !stalled && !errors.Is(err, tc.err) || stalled && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("got %v, want %v", err, tc.err)
				}
				if sends.Load() != tc.sends {
					t.Errorf("%d sends, want %d", sends.Load(), tc.sends)
				}
				if tc.took != 0 && took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				if rate := r.Breaker().FailureRate(time.Now()); (rate > 0) != tc.failed {
					t.Errorf("failure rate %v: blamed %v, want %v", rate, rate > 0, tc.failed)
				}
				if stalled && !strings.Contains(err.Error(), "reading the request body: the caller sent nothing for too long: 5s") {
					t.Errorf("the error does not say what stood still: %v", err)
				}
				time.Sleep(time.Minute) // let the handlers end
			})
		})
	}
}

// A body whose Read hangs is closed, which lets it return: net/http by itself waits
// for it, whatever becomes of the request.
func TestHangingUploadsAreClosed(t *testing.T) {
	for _, retries := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			below := piped(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
			body, in := io.Pipe()
			go func() { _, _ = in.Write([]byte("some")) }()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://files.test/", body)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			p := forbear.Policy{BodyIdle: 5 * time.Second, Disabled: !retries}
			_, err = httpretry.NewTransport(below, quiet(t, p)).RoundTrip(req)
			e, ok := errors.AsType[*forbear.Error](err)
			if !ok || e.Reason != reason.Terminal || e.Attempts != 1 || !strings.Contains(err.Error(), "the caller sent nothing for too long: 5s") ||
				time.Since(began) != 5*time.Second {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
			if _, err := in.Write([]byte("more")); err != io.ErrClosedPipe {
				t.Errorf("the body is still open: %v", err)
			}
		})
	}
}

// An error that the body's own Read returned is the caller's: one attempt, which the
// breaker does not see, whatever the error looks like.
func TestBrokenUploads(t *testing.T) {
	broken := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} // of a download that is passed on
	for _, pieces := range []int{0, 3} {
		for _, key := range []string{"", key} {
			t.Run(fmt.Sprintf("after %d pieces, key %q", pieces, key), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					below := piped(t, func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
					})
					r := quiet(t, fast)
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://files.test/",
						&drip{0, "piece", pieces, broken})
					if err != nil {
						t.Fatal(err)
					}
					if key != "" {
						req.Header.Set(httpretry.HeaderKey, key)
					}
					_, err = httpretry.NewTransport(below, r).RoundTrip(req)
					e, ok := errors.AsType[*forbear.Error](err)
					if !ok || e.Attempts != 1 || e.Type != "request_body" || !errors.Is(err, syscall.ECONNRESET) {
						t.Errorf("got %#v, want the caller's own error after one attempt", err)
					}
					if permit, closed := r.Breaker().Glance(); !closed || permit.Probe || r.Breaker().FailureRate(time.Now()) != 0 {
						t.Error("the dependency is blamed for the caller's body")
					}
				})
			})
		}
	}
}

// A caller's broken body does not use up the probes of a breaker that is half-open.
func TestBrokenUploadGivesItsProbeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := piped(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		p := fast
		p.Breaker = breaker.Policy{Probes: 1}
		r := quiet(t, p)
		r.Breaker().Force(breaker.Open, "test", time.Now())
		r.Breaker().Release()
		time.Sleep(time.Minute)
		rt := httpretry.NewTransport(below, r)
		post := func(body io.Reader) error {
			resp, err := rt.RoundTrip(newRequestOf(t, body))
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		}
		if err := post(&drip{0, "", 0, errors.New("gone")}); err == nil {
			t.Fatal("a body that cannot be read was sent")
		}
		if r.Breaker().State() != breaker.HalfOpen {
			t.Fatalf("after the probe of the caller's fault: %v", r.Breaker().State())
		}
		if err := post(strings.NewReader("ok")); err != nil || r.Breaker().State() != breaker.Closed {
			t.Errorf("the next probe: %v, %v", err, r.Breaker().State())
		}
	})
}

func newRequestOf(t *testing.T, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://files.test/", body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// The caller's body is closed once, as by net/http alone.
func TestStalledBodyIsClosedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := piped(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
		var closed atomic.Int64
		stop := make(chan struct{})
		body := &hanging{stop: stop, closed: &closed}
		req := newRequest(t, http.MethodPut, "http://files.test/", "", "")
		req.Body, req.ContentLength = body, 100
		req.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("never") }
		_, err := httpretry.NewTransport(below, quiet(t, fast)).RoundTrip(req)
		synctest.Wait()
		if closed.Load() != 1 {
			t.Errorf("closed %d times: %v", closed.Load(), err)
		}
	})
}

// hanging is a body whose Read returns when it is closed.
type hanging struct {
	stop   chan struct{}
	once   sync.Once
	closed *atomic.Int64
}

func (h *hanging) Read([]byte) (int, error) { <-h.stop; return 0, errors.New("closed") }
func (h *hanging) Close() error {
	h.closed.Add(1)
	h.once.Do(func() { close(h.stop) })
	return nil
}
