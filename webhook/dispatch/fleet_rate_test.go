package dispatch_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// most returns the most sends in any second of a time, and those in all of it.
func (r *receiver) most1s(from, to time.Time) (most, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, at := range r.sent {
		if at.Before(from) || !at.Before(to) {
			continue
		}
		all++
		n := 0
		for _, other := range r.sent[i:] {
			if other.Sub(at) >= time.Second {
				break
			}
			n++
		}
		most = max(most, n)
	}
	return most, all
}

// joins runs one more dispatcher over a store; leave ends it as a stop does.
func joins(t *testing.T, s *memstore.Store, to http.RoundTripper) (d *dispatch.Dispatcher, leave func()) {
	t.Helper()
	d, err := dispatch.New(dispatch.Config{Store: s, Alerts: s, Transport: to, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return d, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The rate of an endpoint is that of all processes together: with one, with two, with
// four, while they come and go, and when one dies. What they may send is sent.
func TestRateIsOfTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 40
		s, r := &memstore.Store{}, &receiver{respond: always(200)}
		first, leave := joins(t, s, r)
		defer leave()
		if _, err := first.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/", Rate: rate, Concurrency: 100}); err != nil {
			t.Fatal(err)
		}
		accept(t, first, 6000)
		// watch lets a time pass, and holds what was sent in it against the rate. Only a
		// rollout may fall short.
		watch := func(what string, d time.Duration, least float64) {
			t.Helper()
			from := time.Now()
			time.Sleep(d)
			most, all := r.most1s(from, from.Add(d-time.Second))
			t.Logf("%s: at most %d in a second, %.1f on average", what, most, float64(all)/(d-time.Second).Seconds())
			if most > rate*105/100 || float64(all) < least*rate*(d-time.Second).Seconds() {
				t.Errorf("%s: at most %d in a second, %d in %v; want %d a second", what, most, all, d-time.Second, rate)
			}
		}
		time.Sleep(time.Second) // the bucket is full at first
		watch("alone", 11*time.Second, 0.95)
		_, leave2 := joins(t, s, r)
		watch("a second one joins", 6*time.Second, 0.45)
		watch("two", 11*time.Second, 0.95)
		_, leave3 := joins(t, s, r)
		_, leave4 := joins(t, s, r)
		watch("two more join", 6*time.Second, 0.45)
		watch("four", 11*time.Second, 0.95)
		leave3()
		leave4()
		watch("two leave", 4*time.Second, 0.45)
		watch("two again", 11*time.Second, 0.95)
		// One that dies keeps its part for as long as its lease.
		if _, err := s.Heartbeat(t.Context(), "dead", 15*time.Second); err != nil {
			t.Fatal(err)
		}
		watch("one dies", 17*time.Second, 0.6)
		watch("two that live", 11*time.Second, 0.95)
		leave2()
		watch("one is left", 4*time.Second, 0.45)
		watch("alone again", 11*time.Second, 0.95)
	})
}

// A process that hands over leaves its part at once, and one whose heartbeats are not
// stored sends nothing to such an endpoint.
func TestRateAcrossAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := &memstore.Store{}, &receiver{respond: always(200)}
		old, leave := joins(t, s, r)
		defer leave()
		if _, err := old.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/", Rate: 10}); err != nil {
			t.Fatal(err)
		}
		accept(t, old, 1000)
		time.Sleep(5 * time.Second)
		fresh, leave2 := joins(t, s, r)
		defer leave2()
		old.Pause()
		time.Sleep(3 * time.Second)
		from := time.Now()
		time.Sleep(5 * time.Second)
		if n := r.since(from); n < 45 || n > 52 {
			t.Errorf("%d sends in 5 s, want 10 a second", n)
		}
		_ = fresh
		if n, err := s.Heartbeat(t.Context(), "test", time.Millisecond); n != 2 || err != nil {
			t.Errorf("%d are at work with this test, %v; want one", n, err)
		}
	})
}

// Without a rate nothing is stored.
func TestNoHeartbeatWithoutARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := &memstore.Store{}, &receiver{respond: always(200)}
		d := run(t, s, dispatch.Config{Transport: r}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		time.Sleep(10 * time.Second)
		count := func() int {
			n, err := s.Heartbeat(t.Context(), fmt.Sprint(time.Now()), time.Nanosecond)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			return n - 1
		}
		if n := count(); n != 0 {
			t.Errorf("%d are at work", n)
		}
		if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "a", URL: "https://example.com/", Rate: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := count(); n != 1 {
			t.Errorf("%d are at work, want 1", n)
		}
	})
}
