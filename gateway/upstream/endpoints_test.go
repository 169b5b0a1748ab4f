package upstream_test

import (
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// farm is several servers of one dependency, which count what they get.
type farm struct {
	addresses []string
	counts    []atomic.Int64
	servers   []*httptest.Server
}

func newFarm(t *testing.T, n int, serve func(i int, w http.ResponseWriter, r *http.Request)) *farm {
	t.Helper()
	f := &farm{counts: make([]atomic.Int64, n)}
	for i := range n {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.counts[i].Add(1)
			serve(i, w, r)
		}))
		t.Cleanup(srv.Close)
		f.servers = append(f.servers, srv)
		f.addresses = append(f.addresses, srv.Listener.Addr().String())
	}
	return f
}

func (f *farm) upstream(t *testing.T) *upstream.Upstream {
	t.Helper()
	u, err := upstream.New(upstream.Config{Endpoints: f.addresses, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	return u
}

// send makes a request to the dependency by its name, and returns the status.
func send(t *testing.T, rt http.RoundTripper, method, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://payments.internal/x", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// The addresses take turns, whatever the number of callers; the URL's host stays the
// name that the servers are called by.
func TestTurnsAreEven(t *testing.T) {
	race.TooSlow(t, "TestRotationUnderLoad has many requests at once")
	var hosts sync.Map
	f := newFarm(t, 3, func(_ int, _ http.ResponseWriter, r *http.Request) { hosts.Store(r.Host, true) })
	u := f.upstream(t)
	const calls, callers = 30_000, 16
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls / callers {
				send(t, u, http.MethodGet, "")
			}
		})
	}
	all.Wait()
	for i := range f.counts {
		if n := f.counts[i].Load(); math.Abs(float64(n)-calls/3) > calls/300 {
			t.Errorf("address %d got %d of %d calls, want a third within 1 %%", i, n, calls)
		}
	}
	hosts.Range(func(host, _ any) bool {
		if host != "payments.internal" {
			t.Errorf("a server was called %q", host)
		}
		return true
	})
}

// A slow address gets its share and no more, as long as it responds: the calls that
// wait there do not pile up on top of it, nor do the others get less.
func TestSlowAddressGetsItsShare(t *testing.T) {
	release := make(chan struct{})
	f := newFarm(t, 3, func(i int, _ http.ResponseWriter, _ *http.Request) {
		if i == 0 {
			<-release
		}
	})
	u := f.upstream(t)
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() { send(t, u, http.MethodGet, "") })
	}
	waitFor(t, &f.counts[0], 20)
	waitFor(t, &f.counts[1], 20)
	waitFor(t, &f.counts[2], 20)
	close(release)
	all.Wait()
}

func retrying(t *testing.T, u http.RoundTripper) http.RoundTripper {
	t.Helper()
	p := forbear.Policy{Backoff: forbear.Backoff{Base: 1, Cap: 1}, MaxRetries: 5}
	p.Breaker.Disabled = true
	r, err := forbear.New("payments", p, forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return httpretry.NewTransport(u, r)
}

// A retry goes to an address where the call has not been; when it has been at all of
// them, to any but the last.
func TestRetryGoesElsewhere(t *testing.T) {
	var mu sync.Mutex
	visited := map[string][]int{}
	f := newFarm(t, 3, func(i int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		visited[string(body)] = append(visited[string(body)], i)
		mu.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	rt := retrying(t, f.upstream(t))
	var all sync.WaitGroup
	for n := range 200 { // at once, so that each gets turns of others between its own
		all.Go(func() { send(t, rt, http.MethodPut, strings.Repeat("x", n+1)) })
	}
	all.Wait()
	for _, at := range visited {
		if len(at) != 6 {
			t.Fatalf("%d attempts, want 6", len(at))
		}
		if first := slices.Sorted(slices.Values(at[:3])); !slices.Equal(first, []int{0, 1, 2}) {
			t.Errorf("the first three attempts went to %v", at[:3])
		}
		for i := 1; i < len(at); i++ {
			if at[i] == at[i-1] {
				t.Errorf("a retry went to the address that had just failed: %v", at)
			}
		}
	}
}

// A call that finds one address of three closed goes to another one, without a retry.
func TestOneDeadAddress(t *testing.T) {
	f := newFarm(t, 3, func(int, http.ResponseWriter, *http.Request) {})
	f.servers[1].Close()
	u := f.upstream(t)
	var before, after int64
	counted := roundTripper(func(r *http.Request) (*http.Response, error) { before++; return u.RoundTrip(r) })
	rt := retrying(t, counted)
	for range 300 {
		if status := send(t, rt, http.MethodGet, ""); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	after = before - 300
	if after != 0 {
		t.Errorf("%d retries in 300 calls", after)
	}
	status := u.Status()
	if len(status) != 3 || status[1].In || status[1].Until.IsZero() || status[1].Failures < 3 || !status[0].In || !status[2].In {
		t.Errorf("status %+v", status)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// With one address nothing is left out, and nothing is noted.
func TestOneAddress(t *testing.T) {
	f := newFarm(t, 1, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	u := f.upstream(t)
	for range 100 {
		send(t, u, http.MethodGet, "")
	}
	if n := f.counts[0].Load(); n != 100 || u.Status() != nil {
		t.Errorf("%d of 100 calls came, %v", n, u.Status())
	}
}

func TestEndpointFaults(t *testing.T) {
	for _, tt := range []struct {
		c    upstream.Config
		want string
	}{
		{upstream.Config{Endpoints: []string{"10.0.0.1"}}, `"10.0.0.1" is not HOST:PORT`},
		{upstream.Config{Endpoints: []string{"10.0.0.1:0"}}, `"10.0.0.1:0" is not HOST:PORT`},
		{upstream.Config{Endpoints: []string{":80"}}, `":80" is not HOST:PORT`},
		{upstream.Config{Endpoints: []string{"a:80", "b:80", "a:80"}}, "a:80 appears twice"},
		{upstream.Config{Endpoints: []string{"a:80"}, DNS: "b:80"}, "a list or dns, not both"},
		{upstream.Config{DNS: "b"}, `"b" is not HOST:PORT`},
		{upstream.Config{Endpoints: make([]string, 257)}, "at most 256"},
	} {
		if _, err := upstream.New(tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
