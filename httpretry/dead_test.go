package httpretry_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// behindRelay is a server behind a relay whose connections can go silent, and a transport
// to it.
func behindRelay(t *testing.T, http2 bool, serve http.HandlerFunc) (*porttest.Relay, *http.Transport, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(serve)
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	relay := porttest.NewRelay(t, s.Listener.Addr().String())
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"},
		Protocols:       &http.Protocols{}, MaxIdleConnsPerHost: 100,
	}
	tr.Protocols.SetHTTP1(!http2)
	tr.Protocols.SetHTTP2(http2)
	t.Cleanup(tr.CloseIdleConnections)
	return relay, tr, "https://" + relay.Address()
}

// A pool of connections that a firewall has forgotten costs each call an attempt at most,
// also where calls go on over them; then new ones are used. The dependency is not blamed.
func TestForgottenConnections(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		for _, callers := range []int{1, 30} {
			t.Run(fmt.Sprint(name, " ", callers), func(t *testing.T) {
				t.Parallel()
				var arrived sync.WaitGroup
				arrived.Add(callers)
				relay, tr, url := behindRelay(t, http2, func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/warm" { // all at once, so that as many connections are needed
						arrived.Done()
						arrived.Wait()
					}
				})
				var most atomic.Int64
				r, err := forbear.New("payments", forbear.Policy{}, forbear.WithoutLog(), forbear.WithObserver(&forbear.Observer{
					AttemptStarted: func(_ context.Context, i forbear.Info) {
						for n := most.Load(); int64(i.Attempt) > n && !most.CompareAndSwap(n, int64(i.Attempt)); n = most.Load() {
						}
					},
				}))
				if err != nil {
					t.Fatal(err)
				}
				each := func(transport http.RoundTripper, n int, path string) {
					var calls sync.WaitGroup
					for range callers {
						calls.Go(func() {
							for range n {
								resp, err := transport.RoundTrip(newRequest(t, http.MethodGet, url+path, "", ""))
								if err != nil {
									t.Errorf("%s: %v", path, err)
									continue
								}
								_ = resp.Body.Close()
							}
						})
					}
					calls.Wait()
				}
				each(tr, 1, "/warm")
				n := relay.Forget()
				each(httpretry.NewTransport(tr, r), 20, "/")
				if most.Load() > 2 {
					t.Errorf("a call made %d attempts", most.Load())
				}
				if state := r.Breaker().State(); state != breaker.Closed {
					t.Errorf("the breaker is %v", state)
				}
				t.Logf("%d connections were forgotten", n)
			})
		}
	}
}

// A server that is slow keeps its connection: the calls of others are on it.
func TestSlowServersKeepTheirConnection(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var conns sync.Map
	_, tr, url := behindRelay(t, true, func(_ http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		if r.URL.Path != "/" {
			<-release
		}
	})
	get := func(transport http.RoundTripper, path string) error {
		resp, err := transport.RoundTrip(newRequest(t, http.MethodGet, url+path, "", ""))
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := get(tr, "/"); err != nil {
		t.Fatal(err)
	}
	other := make(chan error, 1)
	go func() { other <- get(tr, "/other") }()
	// Also where its caller has gone, and where no time is left to wait for its word.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := httpretry.NewTransport(tr, quiet(t, forbear.Policy{})).RoundTrip(newRequest(t, http.MethodGet, url+"/slow", "", "").WithContext(ctx)); err == nil {
		t.Error("it has responded")
	}
	if err := get(httpretry.NewTransport(tr, quiet(t, forbear.Policy{PerAttempt: 200 * time.Millisecond, Total: 200 * time.Millisecond})), "/slow"); err == nil {
		t.Error("it has responded")
	}
	err := get(httpretry.NewTransport(tr, quiet(t, forbear.Policy{Disabled: true, PerAttempt: time.Second})), "/slow")
	if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Type != "timeout" {
		t.Errorf("got %v, want a time-out", err)
	}
	close(release)
	if err := <-other; err != nil {
		t.Errorf("the call of another: %v", err)
	}
	n := 0
	conns.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

// A dependency that does not respond now and then is no forgotten connection: what its
// failures cost is bounded by the budget, but for one, and the breaker counts them.
func TestDependencyThatHangsNowAndThen(t *testing.T) {
	t.Parallel()
	const calls = 12
	var sends atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if sends.Add(1)%2 == 0 {
			<-r.Context().Done()
		}
	}))
	defer s.Close()
	r := quiet(t, forbear.Policy{PerAttempt: 100 * time.Millisecond, MaxRetries: 1, Backoff: forbear.Backoff{Base: time.Millisecond}})
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	transport := httpretry.NewTransport(tr, r)
	begin := time.Now()
	for range calls {
		resp, err := transport.RoundTrip(newRequest(t, http.MethodGet, s.URL, "", ""))
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	allowed := r.Policy().Budget.Allowed(calls)
	if retries := sends.Load() - calls; time.Since(begin) < 20*time.Second && retries > allowed+1 {
		t.Errorf("%d retries of %d calls, want %d at most and one of the incident", retries, calls, allowed)
	}
}
