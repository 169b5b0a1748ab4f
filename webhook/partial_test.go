package webhook_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storetest"
	"github.com/forbear-go/forbear/webhook"
)

// partial is what became of messages to an endpoint that fails by luck. The
// luck is each attempt's own: the same for all who try it.
type partial struct {
	allowed int // messages that the attempts allow to arrive
	at      []time.Duration
	sends   int
	firsts  int
	stats   webhook.Stats
}

func fails(id string, attempt int, share float64) bool {
	h := fnv.New64a()
	fmt.Fprint(h, id)
	return rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64() < share
}

// deliver sends n messages at once and looks at the endpoint for a time.
func deliver(t *testing.T, n int, share float64, e webhook.Endpoint, watch time.Duration) (p partial) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		arrived := map[string]time.Duration{}
		r := &receiver{takes: 10 * time.Millisecond}
		r.answer = func(_ int, req *http.Request) int {
			id := req.Header.Get("Webhook-Id")
			before, _ := strconv.Atoi(req.Header.Get("X-Retry-Attempt"))
			if p.sends++; before == 0 {
				p.firsts++
			}
			if fails(id, before+1, share) {
				return 503
			}
			if _, twice := arrived[id]; twice {
				t.Errorf("%s arrived twice", id)
			}
			arrived[id] = time.Since(began)
			return 200
		}
		e.ID, e.URL = "a", "https://example.com/"
		// Waits are the middle of what they may be, so that two runs can be
		// compared by a few late ones.
		middle := []forbear.Option{forbear.WithoutLog(), forbear.WithDraw(func() float64 { return 0.5 })}
		d := run(t, &storetest.Memory{}, webhook.Config{Transport: r, Options: middle}, e)
		for from := 0; from < n; from += 500 {
			msgs := make([]webhook.Message, min(500, n-from))
			for i := range msgs {
				id := fmt.Sprint("m", from+i)
				msgs[i] = webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(`{}`)}
				if slices.ContainsFunc([]int{1, 2, 3, 4, 5}, func(a int) bool { return !fails(id, a, share) }) {
					p.allowed++
				}
			}
			if _, err := d.Accept(t.Context(), msgs...); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(watch)
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, at := range arrived {
			p.at = append(p.at, at)
		}
		slices.Sort(p.at)
		p.stats = d.Stats()
	})
	return p
}

// done returns when the given share of what the attempts allow had arrived.
func (p *partial) done(share float64) time.Duration {
	if n := int(share * float64(p.allowed)); n <= len(p.at) {
		return p.at[n-1]
	}
	return 1 << 62
}

// TestPartialFailure: an endpoint that fails a part of its attempts gets its
// messages nearly as soon as from somebody who has no budget and no breaker, and
// with as few sends.
func TestPartialFailure(t *testing.T) {
	unbound := webhook.Endpoint{Policy: forbear.Policy{
		Breaker: forbear.BreakerPolicy{Disabled: true}, Budget: forbear.BudgetPolicy{MinRetries: 1 << 30},
	}}
	for _, share := range []float64{0.15, 0.25, 0.30, 0.40} {
		for _, concurrency := range []int{10, 50} {
			t.Run(fmt.Sprintf("%.0f %%, %d at a time", 100*share, concurrency), func(t *testing.T) {
				unbound.Concurrency = concurrency
				ideal := deliver(t, 3000, share, unbound, time.Hour)
				got := deliver(t, 3000, share, webhook.Endpoint{Concurrency: concurrency}, time.Hour)
				t.Logf("99 %% after %v, ideally %v; all after %v, ideally %v; sends %d, ideally %d; put off %d times",
					got.done(0.99), ideal.done(0.99), got.done(1), ideal.done(1), got.sends, ideal.sends, got.stats.Postponed)
				if len(ideal.at) != ideal.allowed || len(got.at) != got.allowed {
					t.Errorf("%d and ideally %d arrived of the %d that the attempts allow", len(got.at), len(ideal.at), got.allowed)
				}
				if got.done(0.99) > ideal.done(0.99)*13/10 {
					t.Errorf("99 %% after %v, want at most 1.3 times the ideal %v", got.done(0.99), ideal.done(0.99))
				}
				if got.sends > ideal.sends*11/10 {
					t.Errorf("%d sends, want at most 1.1 times the ideal %d", got.sends, ideal.sends)
				}
				if most := got.firsts*12/10 + len(got.at); got.sends > most {
					t.Errorf("%d sends, want at most 1.2 of the first attempts and what succeeded: %d", got.sends, most)
				}
			})
		}
	}
}

// TestDeadEndpoint: it gets at most 1.2 sends for a first attempt.
func TestDeadEndpoint(t *testing.T) {
	got := deliver(t, 3000, 1, webhook.Endpoint{}, 6*time.Hour)
	t.Logf("%d sends, %d first attempts, in six hours", got.sends, got.firsts)
	if got.sends > got.firsts*12/10 {
		t.Errorf("%d sends for %d first attempts", got.sends, got.firsts)
	}
}
