package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// transport is a receiver that a test writes as a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// responds returns a response of nothing but a status.
func responds(status int) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, ProtoMajor: 1, ProtoMinor: 1}
}

// trickle accepts n messages to endpoint "a", evenly over a time.
func trickle(t *testing.T, d *dispatch.Dispatcher, n int, over time.Duration) {
	t.Helper()
	const at = 50
	for range n / at {
		accept(t, d, at)
		time.Sleep(over / time.Duration(n/at))
	}
}

// raised returns the reasons of the alerts about endpoints, with their counts, and
// how many letters there are.
func raised(t *testing.T, s *memstore.Store) (reasons []string, letters int64) {
	t.Helper()
	list, err := s.AlertPage(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if a.Letter == "" {
			reasons = append(reasons, fmt.Sprintf("%s %d", a.Reason, a.Count))
		}
	}
	stats, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range stats {
		letters += int64(q.Count)
	}
	return reasons, letters
}

// An endpoint that responds 404 to everything for ten minutes, with many messages in
// them, costs the messages of the first row and those of its probes; all others
// wait and arrive.
func TestRejectingEndpoint(t *testing.T) {
	race.TooSlow(t, "TestHeldEndpointIsLookedAtAgain holds one, too")
	for _, c := range []struct {
		name    string
		respond func() (*http.Response, error)
		n       int
		letters int64 // at most
	}{
		{"404", func() (*http.Response, error) { return responds(404), nil }, 10_000, 60},
		{"403", func() (*http.Response, error) { return responds(403), nil }, 2000, 60},
		{"redirects", func() (*http.Response, error) { return responds(302), nil }, 2000, 60},
		{"blocked", func() (*http.Response, error) { return nil, webhook.ErrBlocked }, 2000, 60},
		{"422, which may be the messages'", func() (*http.Response, error) { return responds(422), nil }, 2000, 140},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, n := time.Now(), ringtest.Size(500, c.n)
				var sends, good atomic.Int64
				s := &memstore.Store{}
				d := run(t, s, dispatch.Config{Options: []forbear.Option{forbear.WithoutLog()}, Poll: 10 * time.Second, Transport: transport(func(*http.Request) (*http.Response, error) {
					time.Sleep(10 * time.Millisecond)
					if sends.Add(1); time.Since(began) < 10*time.Minute {
						return c.respond()
					}
					good.Add(1)
					return responds(200), nil
				})}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
				trickle(t, d, n, 10*time.Minute)
				alerts, _ := raised(t, s)
				time.Sleep(time.Hour)
				_, letters := raised(t, s)
				t.Logf("%d letters, %d sends, %d accepted, alerts %v", letters, sends.Load(), good.Load(), alerts)
				if letters > c.letters || good.Load() != int64(n)-letters {
					t.Errorf("%d letters, want at most %d; %d of the others arrived", letters, c.letters, good.Load())
				}
				if !slices.Equal(alerts, []string{"endpoint_rejecting 1"}) {
					t.Errorf("alerts %v", alerts)
				}
			})
		})
	}
}

// Final responses among accepted messages slow nothing.
func TestMixedStreamIsNotSlowed(t *testing.T) {
	n := ringtest.Size(1000, 5000)
	for _, share := range []float64{0.3, 0.6, 0.9} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &receiver{takes: 10 * time.Millisecond, respond: func(n int, _ *http.Request) int {
					if n%10 < int(10*share) {
						return 422
					}
					return 200
				}}
				s := &memstore.Store{}
				d := run(t, s, dispatch.Config{Transport: r}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
				trickle(t, d, n, time.Minute)
				time.Sleep(time.Second)
				if alerts, _ := raised(t, s); len(alerts) != 0 || r.since(time.Time{}) != n {
					t.Errorf("%d of %d sent, alerts %v", r.since(time.Time{}), n, alerts)
				}
			})
		})
	}
}

// A name that does not resolve for ten minutes, with messages in them, costs
// none of them: they wait while the lane looks it up by itself.
func TestUnresolvedEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), ringtest.Size(400, 2000)
		dns := &net.DNSError{Err: "no such host", Name: "example.com", IsNotFound: true}
		var sends, lookups, good atomic.Int64
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{
			Lookup: func(_ context.Context, host string) error {
				if lookups.Add(1); host != "example.com" || time.Since(began) < 10*time.Minute {
					return dns
				}
				return nil
			},
			Transport: transport(func(*http.Request) (*http.Response, error) {
				if sends.Add(1); time.Since(began) < 10*time.Minute {
					return nil, dns
				}
				good.Add(1)
				return responds(200), nil
			}),
		}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		trickle(t, d, n, 10*time.Minute)
		alerts, _ := raised(t, s)
		before := sends.Load()
		time.Sleep(time.Hour)
		_, letters := raised(t, s)
		t.Logf("%d sends and %d lookups, then %d sends, %d letters, alerts %v", before, lookups.Load(), sends.Load()-before, letters, alerts)
		if before > 10 || lookups.Load() > 40 || letters != 0 || good.Load() != int64(n) {
			t.Errorf("%d sends and %d lookups while it did not resolve; %d of %d arrived, %d letters", before, lookups.Load(), good.Load(), n, letters)
		}
		if !slices.Equal(alerts, []string{"endpoint_unresolved 1"}) {
			t.Errorf("alerts %v", alerts)
		}
	})
}

// A name that lookups resolve and connections do not costs a message its two
// attempts now and then, and no more of them with time.
func TestNameThatOnlyLookupsKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int64
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{
			Lookup: func(context.Context, string) error { return nil },
			Transport: transport(func(*http.Request) (*http.Response, error) {
				sends.Add(1)
				return nil, &net.DNSError{Err: "server misbehaving", Name: "example.com"}
			}),
		}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		accept(t, d, ringtest.Size(300, 1000))
		time.Sleep(ringtest.Size(3*time.Hour, 10*time.Hour))
		if l := d.LaneStats("a"); l.Hold != dispatch.HoldUnresolved || l.Held != "dns_failure" || !slices.Equal(d.Holding(), []string{"a"}) {
			t.Errorf("shown is %+v, held are %q", l, d.Holding())
		}
		if alerts, letters := raised(t, s); sends.Load() > 250 || letters > 130 || !slices.Contains(alerts, "endpoint_unresolved 1") {
			t.Errorf("%d sends and %d letters, alerts %v", sends.Load(), letters, alerts)
		}
	})
}

// A change of the endpoint has the next message sent at once, and a test that is
// accepted all of them: the operator does not wait for the next probe.
func TestMendedEndpointGoesOn(t *testing.T) {
	race.TooSlow(t, "TestHeldEndpointIsLookedAtAgain holds one, too")
	for _, c := range []struct {
		name string
		mend func(t *testing.T, d *dispatch.Dispatcher)
	}{
		{"a header", func(t *testing.T, d *dispatch.Dispatcher) {
			_, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/", Headers: []webhook.Header{{Name: "X-Key", Value: "1"}}})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"the address", func(t *testing.T, d *dispatch.Dispatcher) {
			if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/new"}); err != nil {
				t.Fatal(err)
			}
		}},
		{"a test", func(t *testing.T, d *dispatch.Dispatcher) {
			if res, err := d.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || !res.OK {
				t.Fatal(res, err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mended atomic.Bool
				s := &memstore.Store{}
				d := run(t, s, dispatch.Config{Options: []forbear.Option{forbear.WithoutLog()}, Poll: 10 * time.Second, Transport: transport(func(*http.Request) (*http.Response, error) {
					if mended.Load() {
						return responds(200), nil
					}
					return responds(404), nil
				})}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
				accept(t, d, 300)
				time.Sleep(2 * time.Hour)
				_, letters := raised(t, s)
				if l := d.LaneStats("a"); l.Hold != dispatch.HoldRejecting || l.Held != "http_404" || l.NextProbe.Before(time.Now()) && !l.NextProbe.IsZero() {
					t.Errorf("shown is %+v", l)
				}
				mended.Store(true)
				c.mend(t, d)
				time.Sleep(time.Second)
				if got := d.Stats().Delivered; got != 300-letters || letters > 60 {
					t.Errorf("%d letters, and %d of the rest delivered within a second", letters, got)
				}
			})
		})
	}
}

// A transport of the caller's own may resolve names elsewhere, as a proxy does: after a
// failure for one a message finds out, and no lookup here keeps it from that.
func TestTransportThatResolvesNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &memstore.Store{}
		var asked atomic.Int64
		d, err := dispatch.New(dispatch.Config{
			Store: s, Alerts: s, Logger: slog.New(slog.DiscardHandler),
			Transport: transport(func(*http.Request) (*http.Response, error) {
				if asked.Add(1) == 1 {
					return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "proxy", IsNotFound: true}}
				}
				return responds(200), nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://name.invalid/"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		for _, id := range []string{"m1", "m2"} {
			if _, err := d.Accept(ctx, webhook.Message{ID: id, Endpoints: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		for _, id := range []string{"m1", "m2"} {
			if list, err := d.Deliveries(ctx, id); err != nil || list[0].State != store.StateDelivered {
				t.Errorf("%s after a minute: %+v, %v", id, list, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
