package dispatch_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge/partial"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

// deliver sends messages to an endpoint at once and looks at it for a time.
func deliver(t *testing.T, ids []string, share float64, e webhook.Endpoint, watch time.Duration) *partial.Work {
	t.Helper()
	w := &partial.Work{Share: partial.Always(share)}
	synctest.Test(t, func(t *testing.T) {
		w.Begin()
		r := &receiver{takes: 10 * time.Millisecond, respond: func(_ int, req *http.Request) int {
			if w.Try(t, req.Header.Get("Webhook-Id")) {
				return 200
			}
			return 503
		}}
		e.ID, e.URL = "a", "https://example.com/"
		// Waits are the middle of what they may be, so that two runs can be
		// compared by a few late ones.
		middle := []forbear.Option{forbear.WithoutLog(), forbear.WithRand(func() float64 { return 0.5 })}
		if e.Policy.Breaker.Disabled { // the sender without protection
			middle = append(middle, forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))
		}
		d := run(t, &memstore.Store{}, dispatch.Config{Transport: r, Options: middle}, e)
		for _, id := range ids {
			if _, err := d.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(`{}`)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(watch)
	})
	return w
}

func messages(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint("m", i))
	}
	return ids
}

// TestPartialFailure: an endpoint that fails a part of its attempts gets its
// messages nearly as soon as from a sender without a budget and a breaker, and
// with as few sends.
func TestPartialFailure(t *testing.T) {
	race.TooSlow(t, "TestMixedStreamIsNotSlowed has such an endpoint, too")
	unbound := forbear.Policy{Breaker: breaker.Policy{Disabled: true}}
	ids := messages(ringtest.Size(400, 3000))
	watch := ringtest.Size(5*time.Minute, time.Hour)
	for _, share := range []float64{0.15, 0.25, 0.30, 0.40} {
		for _, n := range []int{10, 50} {
			t.Run(fmt.Sprintf("%.0f %%, %d at a time", 100*share, n), func(t *testing.T) {
				ideal := deliver(t, ids, share, webhook.Endpoint{Concurrency: n, Policy: unbound}, watch)
				got := deliver(t, ids, share, webhook.Endpoint{Concurrency: n}, watch)
				got.Beside(t, ideal, got.Allowed(ids, 5))
			})
		}
	}
}

// TestDeadEndpoint: it gets at most 1.2 sends for a first attempt.
func TestDeadEndpoint(t *testing.T) {
	got := deliver(t, messages(ringtest.Size(600, 3000)), 1, webhook.Endpoint{}, ringtest.Size(time.Hour, 6*time.Hour))
	t.Logf("%d sends, %d first attempts", got.Sends, got.Firsts())
	if got.Sends > got.Firsts()*12/10 {
		t.Errorf("%d sends for %d first attempts", got.Sends, got.Firsts())
	}
}
