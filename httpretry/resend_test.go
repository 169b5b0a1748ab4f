package httpretry_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// hangUp is an HTTP/1 server that answers the first request on a connection and
// hangs up on every later one after reading it: what a client sees of a server
// whose idle timeout is a little shorter than its own.
type hangUp struct {
	net.Listener
	hungUp atomic.Int64 // requests that were read and not answered
	heal   atomic.Bool  // answer everything from now on
}

func newHangUp(t *testing.T) *hangUp {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &hangUp{Listener: l}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer context.AfterFunc(t.Context(), func() { _ = c.Close() })()
				s.serve(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); conns.Wait() })
	return s
}

func (s *hangUp) serve(c net.Conn) {
	defer c.Close()
	br := bufio.NewReader(c)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if n > 0 && !s.heal.Load() {
			s.hungUp.Add(1)
			return
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// warm fills the pool of base with n idle connections.
func (s *hangUp) warm(t *testing.T, base *http.Transport, n int) {
	t.Helper()
	bodies := make([]io.Closer, n)
	for i := range bodies {
		resp, err := base.RoundTrip(newRequest(t, http.MethodGet, "http://"+s.Addr().String(), "", ""))
		if err != nil {
			t.Fatal(err)
		}
		bodies[i] = resp.Body // keep it busy, so that the next one dials
		defer func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}()
	}
}

func newRequest(t *testing.T, method, url, body, key string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set(httpretry.HeaderKey, key)
	}
	return req
}

const key = "7c4a8d09-ca95-4c6d-8f3b-91a7e6e0b9d2"

var resendCases = []struct {
	name, method, body, key string
}{
	{"GET", http.MethodGet, "", ""},
	{"PUT", http.MethodPut, "payload", ""},
	{"POST with a key", http.MethodPost, "payload", key},
}

// fast is a policy whose waits do not slow the tests down.
var fast = forbear.Policy{Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond}}

// TestSendsOnTheWireAreAttempts is the ruling on net/http's re-sends for
// HTTP/1: on eight dead connections a plain transport sends a GET nine times.
func TestSendsOnTheWireAreAttempts(t *testing.T) {
	for _, tc := range resendCases {
		t.Run(tc.name, func(t *testing.T) {
			s := newHangUp(t)
			base := &http.Transport{MaxIdleConnsPerHost: 16}
			t.Cleanup(base.CloseIdleConnections)
			s.warm(t, base, 8)
			attempts := &counter{}
			r, err := forbear.New("payments", fast, forbear.WithObserver(attempts.observer()))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := httpretry.NewTransport(base, r).RoundTrip(
				newRequest(t, tc.method, "http://"+s.Addr().String(), tc.body, tc.key))
			sends := s.hungUp.Load()
			if err == nil {
				sends++
				_ = resp.Body.Close()
			}
			if sends != attempts.n.Load() {
				t.Errorf("%d sends on the wire, %d attempts reported", sends, attempts.n.Load())
			}
			// After the second dead connection the pool is emptied, and most often what was
			// idle is passed over after the first. A PUT without a key is not what net/http
			// repeats, and fails as it would without us.
			if repeated := tc.method != http.MethodPut; sends > 4 || repeated && (sends > 3 || err != nil) {
				t.Errorf("%d sends, %v; want success with the third, and never more than 4", sends, err)
			}
		})
	}
}

// TestPlainTransportSendsNineTimes holds the trap itself: without it the tests
// above would prove nothing.
func TestPlainTransportSendsNineTimes(t *testing.T) {
	s := newHangUp(t)
	base := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(base.CloseIdleConnections)
	s.warm(t, base, 8)
	resp, err := base.RoundTrip(newRequest(t, http.MethodGet, "http://"+s.Addr().String(), "", ""))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if n := s.hungUp.Load(); n != 8 {
		t.Errorf("a plain transport hit %d dead connections, want 8", n)
	}
}

func TestOneDeadConnectionCostsOneImmediateRetry(t *testing.T) {
	s := newHangUp(t)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	s.warm(t, base, 1)
	rec := &counter{}
	slow := forbear.Policy{Backoff: forbear.Backoff{Base: 20 * time.Second}} // any backoff would be noticed
	r, err := forbear.New("payments", slow, forbear.WithObserver(rec.observer()))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := httpretry.NewTransport(base, r).RoundTrip(newRequest(t, http.MethodGet, "http://"+s.Addr().String(), "", ""))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if rec.n.Load() != 2 || rec.waited.Load() != 0 {
		t.Errorf("%d attempts, waited %v; want 2 attempts and no wait", rec.n.Load(), time.Duration(rec.waited.Load()))
	}
	if used := r.Level(time.Now()).Used; used != 1 {
		t.Errorf("the re-send cost the budget %v, want 1", used)
	}
}

// counter counts what an observer sees.
type counter struct {
	n, waited atomic.Int64
	last      atomic.Pointer[forbear.Failure]
}

func (c *counter) AttemptStarted(context.Context, forbear.Info) { c.n.Add(1) }
func (c *counter) RetryScheduled(_ context.Context, e forbear.RetryScheduled) {
	c.waited.Add(int64(e.Backoff))
}
func (c *counter) Stopped(_ context.Context, e forbear.Stopped) { c.last.Store(&e.Failure) }

func (o *counter) observer() *forbear.Observer {
	return &forbear.Observer{AttemptStarted: o.AttemptStarted, RetryScheduled: o.RetryScheduled, Stopped: o.Stopped}
}

// A dead connection in the pool is not held against the dependency, and no call is
// refused for it, however few calls there are: each succeeds, as with net/http alone,
// also when several connections are dead.
func TestDeadConnectionsRefuseNoCall(t *testing.T) {
	for _, dead := range []int{1, 3} {
		for _, i := range []int{0, 2} { // GET, and POST with a key
			tc, r := resendCases[i], quiet(t, fast) // with the budget's floor of three retries, and a breaker
			for call := range 30 {
				s := newHangUp(t)
				base := &http.Transport{MaxIdleConnsPerHost: dead}
				s.warm(t, base, dead)
				resp, err := httpretry.NewTransport(base, r).RoundTrip(
					newRequest(t, tc.method, "http://"+s.Addr().String(), tc.body, tc.key))
				if err != nil {
					t.Fatalf("%s, %d dead, call %d: %v", tc.name, dead, call, err)
				}
				_ = resp.Body.Close()
				base.CloseIdleConnections()
			}
			if rate := r.Breaker().FailureRate(time.Now()); rate != 0 {
				t.Errorf("%s, %d dead: failure rate %v", tc.name, dead, rate)
			}
			if level := r.Level(time.Now()); level.Used > level.Allowed {
				t.Errorf("%s, %d dead: the budget says %v of %v", tc.name, dead, level.Used, level.Allowed)
			}
		}
	}
}
