package upstream

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// server is one address in a bubble: connections are pipes, and what it does wrong is
// said by a function of the time since the beginning.
type server struct {
	began  time.Time
	wrong  func(since time.Duration) fault
	accept chan net.Conn
	done   chan struct{}
}

type fault int

const (
	fine fault = iota
	refuses
	blackHole
	fails   // 503
	hangsUp // accepts, reads, and closes
	slow    // responds after a second
	silent  // accepts, and never responds
)

func (s *server) fault() fault {
	if s.wrong == nil {
		return fine
	}
	return s.wrong(time.Since(s.began))
}

// dial stands for the network.
func (s *server) dial(ctx context.Context, _, address string) (net.Conn, error) {
	switch s.fault() {
	case refuses:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case blackHole:
		timer := time.NewTimer(httpretry.DefaultConnect)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ours, theirs := net.Pipe()
	select {
	case s.accept <- theirs:
		return ours, nil
	case <-s.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) Accept() (net.Conn, error) {
	select {
	case c := <-s.accept:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *server) Close() error {
	close(s.done)
	return nil
}

func (s *server) Addr() net.Addr { return &net.TCPAddr{} }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	switch s.fault() {
	case fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case hangsUp, refuses: // it has gone down with its connections
		panic(http.ErrAbortHandler)
	case slow:
		time.Sleep(time.Second)
	case silent, blackHole:
		<-r.Context().Done()
	default:
		time.Sleep(5 * time.Millisecond)
	}
}

// blind takes the addresses in turns and knows nothing else, as a name with several
// addresses behind a plain client at its best.
type blind struct {
	b    *Upstream
	next atomic.Int64
}

func (c *blind) RoundTrip(r *http.Request) (*http.Response, error) {
	e := c.b.all[int(c.next.Add(1))%len(c.b.all)]
	return e.conns.pick().send(r)
}

// result is what the callers of one run have met.
type result struct {
	calls, good int
	sends       int64
	p99         time.Duration
	opened      bool // the breaker did
}

func (r result) String() string {
	return fmt.Sprintf("success %6.2f %%, p99 %8v, %.3f sends a call, breaker opened %v",
		100*float64(r.good)/float64(r.calls), r.p99.Round(time.Millisecond), float64(r.sends)/float64(r.calls), r.opened)
}

// run sends 100 calls a second for so long, through what way makes of the addresses.
func run(t *testing.T, length time.Duration, wrong []func(time.Duration) fault, way func(*Upstream) http.RoundTripper, retries bool) (res result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBalanced(Config{Logger: slog.New(slog.DiscardHandler), MaxAge: -1})
		var servers []*http.Server
		for i, w := range wrong {
			s := &server{time.Now(), w, make(chan net.Conn), make(chan struct{})}
			srv := &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
			go func() { _ = srv.Serve(s) }()
			servers = append(servers, srv)
			b.all = append(b.all, &endpoint{address: string(rune('a' + i)), health: newHealth(), conns: newAging(func() *pool {
				return newPool(&http.Transport{DialContext: s.dial, MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Minute})
			}, -1)})
		}
		b.divide()
		var sends atomic.Int64
		way := way(b)
		var rt http.RoundTripper = tripper(func(r *http.Request) (*http.Response, error) {
			sends.Add(1)
			return way.RoundTrip(r)
		})
		if retries {
			r, err := forbear.New("payments", forbear.Policy{}, forbear.WithoutLog(), forbear.WithObserver(&forbear.Observer{
				KeepsLog:     true,
				BreakerMoved: func(m breaker.Transition) { res.opened = res.opened || m.To == breaker.Open },
			}))
			if err != nil {
				t.Fatal(err)
			}
			rt = httpretry.NewTransport(rt, r)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		var took []time.Duration
		for range int(length / (10 * time.Millisecond)) {
			all.Go(func() {
				began := time.Now()
				good := call(t, rt)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(began))
				if res.calls++; good {
					res.good++
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		slices.Sort(took)
		res.sends, res.p99 = sends.Load(), took[len(took)*99/100]
		b.Close()
		for _, srv := range servers {
			_ = srv.Close()
		}
		time.Sleep(time.Minute)
	})
	return res
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// call reports whether it went well within the ten seconds that a caller has.
func call(t *testing.T, rt http.RoundTripper) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://payments.internal/", nil)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err == nil && resp.StatusCode == http.StatusOK
}

func always(f fault) func(time.Duration) fault { return func(time.Duration) fault { return f } }

// after is a fault that begins ten seconds into the run.
func after(f fault) func(time.Duration) fault {
	return func(since time.Duration) fault {
		if since < 10*time.Second {
			return fine
		}
		return f
	}
}

// TestOneOfThree sets the gateway's way beside its retries without any knowledge of
// addresses, and beside plain turns without retries.
func TestOneOfThree(t *testing.T) {
	race.TooSlow(t, "TestRotationUnderLoad has many requests at once")
	length := time.Minute
	if race.Enabled {
		length = 15 * time.Second
	}
	own := func(b *Upstream) http.RoundTripper { return b }
	others := func(b *Upstream) http.RoundTripper { return &blind{b: b} }
	for _, tt := range []struct {
		name  string
		wrong []func(time.Duration) fault
		least float64       // success share
		p99   time.Duration // at most
		sends float64       // a call, at most
	}{
		{"all fine", []func(time.Duration) fault{nil, nil, nil}, 1, 10 * time.Millisecond, 1},
		{"refuses", []func(time.Duration) fault{nil, after(refuses), nil}, 0.999, 1100 * time.Millisecond, 1.02},
		{"refuses from the start", []func(time.Duration) fault{nil, always(refuses), nil}, 0.999, 1100 * time.Millisecond, 1.02},
		{"black hole", []func(time.Duration) fault{nil, after(blackHole), nil}, 0.97, 7 * time.Second, 1.1},
		{"silent", []func(time.Duration) fault{nil, after(silent), nil}, 0.95, 7 * time.Second, 1.1},
		{"503", []func(time.Duration) fault{nil, after(fails), nil}, 0.999, 1100 * time.Millisecond, 1.02},
		{"hangs up", []func(time.Duration) fault{nil, after(hangsUp), nil}, 0.999, 1100 * time.Millisecond, 1.02},
		{"slow", []func(time.Duration) fault{nil, after(slow), nil}, 1, 1100 * time.Millisecond, 1},
		{"flaps", []func(time.Duration) fault{nil, func(since time.Duration) fault {
			if since/(5*time.Second)%2 == 1 {
				return fails
			}
			return fine
		}, nil}, 0.999, 1100 * time.Millisecond, 1.05},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := run(t, length, tt.wrong, own, true)
			t.Logf("endpoints:             %v", got)
			if testing.Verbose() && !race.Enabled {
				t.Logf("turns and retries:     %v", run(t, length, tt.wrong, others, true))
				t.Logf("turns without retries: %v", run(t, length, tt.wrong, others, false))
			}
			if share := float64(got.good) / float64(got.calls); share < tt.least {
				t.Errorf("success %.4f, want %v", share, tt.least)
			}
			if got.p99 > tt.p99 {
				t.Errorf("p99 %v, want at most %v", got.p99, tt.p99)
			}
			if per := float64(got.sends) / float64(got.calls); per > tt.sends && !race.Enabled {
				t.Errorf("%.3f sends a call, want at most %v", per, tt.sends)
			}
			if got.opened {
				t.Error("the breaker opened for one of three")
			}
		})
	}
}

// TestAllFail: a dependency that fails as a whole is the breaker's business: no
// address is left out for it, and no more is sent than to a single address.
func TestAllFail(t *testing.T) {
	down := []func(time.Duration) fault{after(fails), after(fails), after(fails)}
	var out int
	got := run(t, 30*time.Second, down, func(b *Upstream) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			for _, s := range b.Status() {
				if !s.In {
					out++
				}
			}
			return b.RoundTrip(r)
		})
	}, true)
	alone := run(t, 30*time.Second, down[:1], func(b *Upstream) http.RoundTripper { return b }, true)
	t.Logf("three addresses: %v\none: %v", got, alone)
	if !got.opened || out != 0 {
		t.Errorf("breaker opened %v, addresses left out at %d sends; want open and none", got.opened, out)
	}
	if float64(got.sends) > 1.1*float64(alone.sends) {
		t.Errorf("%d sends, %d to one address", got.sends, alone.sends)
	}
}
