package dispatch_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/storetest/memstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
	"github.com/forbear-go/forbear/webhook/store"
)

// An endpoint's breaker is the one of its policy.
func TestPolicyBreakerOfAnEndpoint(t *testing.T) {
	for _, c := range []struct {
		name    string
		breaker breaker.Policy
		sends   int           // until it opens
		wait    time.Duration // until the first probe
	}{
		{"the default", breaker.Policy{}, 20, 5 * time.Second},
		{"one of its own", breaker.Policy{MinCalls: 30, OpenFor: 7 * time.Second}, 30, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &receiver{respond: always(503)}
				e := webhook.Endpoint{ID: "a", URL: "https://example.com/", Concurrency: 1}
				e.Policy.Breaker = c.breaker
				d := run(t, &memstore.Store{}, dispatch.Config{Transport: r}, e)
				accept(t, d, 60)
				began := time.Now()
				time.Sleep(c.wait - time.Second)
				if n := r.since(began); n != c.sends {
					t.Fatalf("%d sends before the breaker held the others back, want %d", n, c.sends)
				}
				// One probe, and the next not before twice the wait.
				time.Sleep(2 * time.Second)
				if n := r.since(began); n != c.sends+1 {
					t.Fatalf("%d sends after the breaker's wait, want one probe", n-c.sends)
				}
				time.Sleep(2*c.wait - 3*time.Second)
				if n := r.since(began); n != c.sends+1 {
					t.Errorf("the second probe came %d times before twice the wait", n-c.sends-1)
				}
				time.Sleep(4 * time.Second)
				if n := r.since(began); n != c.sends+2 {
					t.Errorf("%d probes, want the second after twice the wait", n-c.sends)
				}
			})
		})
	}
	t.Run("none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := &receiver{respond: always(503)}
			e := webhook.Endpoint{ID: "a", URL: "https://example.com/", Concurrency: 1}
			e.Policy.Breaker.Disabled = true
			d := run(t, &memstore.Store{}, dispatch.Config{Transport: r}, e)
			accept(t, d, 60)
			time.Sleep(time.Second)
			if n := r.since(time.Time{}); n < 60 {
				t.Errorf("%d sends of 60: something held them back", n)
			}
		})
	})
}

// Five good probes close the breaker, one after the other, and what was due
// meanwhile follows. There is one alert about the outage.
func TestEndpointRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{respond: always(503)}
		s := &memstore.Store{}
		d := run(t, s, dispatch.Config{Transport: r}, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		accept(t, d, 200)
		time.Sleep(10 * time.Minute)
		r.mu.Lock()
		down := len(r.sent)
		r.respond, r.most, r.takes = always(200), 0, time.Second
		r.mu.Unlock()
		if down > 45 { // 20 and what was in flight, and the probes
			t.Errorf("%d sends in an outage of ten minutes", down)
		}
		back := time.Now()
		time.Sleep(20 * time.Minute)
		if st := d.Stats(); st.Delivered != 200 || st.Dead != 0 {
			t.Errorf("%d delivered and %d dead of 200", st.Delivered, st.Dead)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		after := r.sent[down:]
		for i := range 4 {
			if gap := after[i+1].Sub(after[i]); gap < time.Second {
				t.Errorf("probe %d came %v after the one before: they are not one at a time", i+2, gap)
			}
		}
		if wait := after[0].Sub(back); wait > 10*time.Minute {
			t.Errorf("the recovery was found after %v", wait)
		}
		alerts, _ := s.AlertPage(t.Context(), 0, 10)
		if len(alerts) != 1 || alerts[0].Reason != "endpoint_slowed" || alerts[0].Count != 1 {
			t.Errorf("alerts are %+v", alerts)
		}
	})
}

// putOff adds n deliveries that failed once and wait for their decision: what
// an outage leaves behind.
func putOff(t *testing.T, s *memstore.Store, n int) {
	t.Helper()
	ctx := t.Context()
	for done := 0; done < n; {
		msgs := make([]webhook.Message, min(1000, n-done))
		for i := range msgs {
			id := fmt.Sprint("m", done+i)
			msgs[i] = webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(`{}`), Created: time.Now()}
		}
		done += len(msgs)
		if _, err := s.Accept(ctx, msgs, nil); err != nil {
			t.Fatal(err)
		}
		list, err := s.Claim(ctx, "before", time.Minute, []store.Lane{{Endpoint: "a", Max: len(msgs)}})
		if err != nil || len(list) != len(msgs) {
			t.Fatalf("claimed %d of %d, %v", len(list), len(msgs), err)
		}
		outcomes := make([]store.WriteBack, len(list))
		for i, dl := range list {
			outcomes[i] = store.WriteBack{ID: dl.ID, Fence: dl.Fence, Endpoint: "a", Kind: store.Postponed, After: time.Hour}
			outcomes[i].Progress = edge.Progress{Attempts: 1, Postponed: 3, Last: "http_503"}
			outcomes[i].Progress.State.Attempt = 1
			outcomes[i].Progress.Pending = &edge.Pending{Class: forbear.ClassTransient, Type: "http_503", At: time.Now()}
		}
		if _, err := s.Finish(ctx, outcomes); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Hour)
}

// Many retries are due when an outage ends. They drain at the endpoint's own
// pace: its concurrency, or its rate where it names one.
func TestBacklogDrainsAtTheEndpointsPace(t *testing.T) {
	race.TooSlow(t, "TestManyGoDownAtOnce has backlogs, too")
	takes := ringtest.Size(12500*time.Microsecond, 5*time.Millisecond)
	for _, c := range []struct {
		name   string
		n      int
		rate   float64
		strict bool
		fails  int // one in so many
	}{
		{"its concurrency", ringtest.Size(4000, 100_000), 0, false, 0},
		{"its concurrency, strict", ringtest.Size(4000, 10_000), 0, true, 0},
		{"its rate", ringtest.Size(4000, 10_000), 500, false, 0},
		{"with a stray failure", ringtest.Size(4000, 10_000), 0, false, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &memstore.Store{}
				putOff(t, s, c.n)
				r := &receiver{respond: func(n int, _ *http.Request) int {
					if c.fails > 0 && n%c.fails == c.fails-1 {
						return 503
					}
					return 200
				}, takes: takes}
				e := webhook.Endpoint{ID: "a", URL: "https://example.com/", Concurrency: 20, Rate: c.rate}
				e.Policy.Strict = c.strict
				began := time.Now()
				d := run(t, s, dispatch.Config{Transport: r}, e)
				best := time.Duration(c.n) * takes / 20
				if c.rate > 0 {
					best = time.Duration(float64(c.n) / c.rate * float64(time.Second))
				}
				limit := best*3/2 + time.Second // the places open within a second
				most := c.n
				if c.fails > 0 {
					most = c.n * 9 / 10 // what fails once more waits for its next step
				}
				for d.Stats().Delivered < int64(most) && time.Since(began) < 10*limit {
					time.Sleep(100 * time.Millisecond)
				}
				took := time.Since(began)
				st := d.Stats()
				r.mu.Lock()
				defer r.mu.Unlock()
				t.Logf("%d retries in %v of virtual time, %v at best; at most %d in flight, %d put off once more", c.n, took, best, r.most, st.Postponed)
				if st.Delivered < int64(most) || st.Dead > 0 {
					t.Fatalf("%d delivered and %d dead of %d", st.Delivered, st.Dead, c.n)
				}
				if took > limit {
					t.Errorf("a stall: %v, want at most %v", took, limit)
				}
				if r.most > 20 || took < best*85/100 {
					t.Errorf("a flood: %d in flight, all in %v", r.most, took)
				}
				if c.fails == 0 && len(r.sent) != c.n {
					t.Errorf("%d sends of %d messages", len(r.sent), c.n)
				}
			})
		})
	}
}

// The way out of a backlog is none around the budget: an endpoint that fails
// more often than not gets no more than the budget and what demonstrably
// succeeds, and a dead one next to nothing.
func TestBacklogKeepsToTheBudget(t *testing.T) {
	race.TooSlow(t, "TestManyGoDownAtOnce has backlogs, too")
	for _, fails := range []int{6, 7, 8} {
		t.Run(fmt.Sprintf("%d of 10 fail", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &memstore.Store{}
				putOff(t, s, ringtest.Size(500, 5000))
				good := 0
				r := &receiver{respond: func(n int, _ *http.Request) int {
					if n*7%10 < fails {
						return 503
					}
					good++
					return 200
				}, takes: time.Millisecond}
				e := webhook.Endpoint{ID: "a", URL: "https://example.com/"}
				e.Policy.Breaker.Disabled = true // the budget and the pace alone
				d := run(t, s, dispatch.Config{Transport: r}, e)
				for range ringtest.Size(40, 300) { // 33 new messages each time
					accept(t, d, 33)
					time.Sleep(300 * time.Millisecond)
				}
				r.mu.Lock()
				defer r.mu.Unlock()
				sends, initial := len(r.sent), len(r.sent)-r.retries
				t.Logf("%d sends, %d of them first attempts, %d good", sends, initial, good)
				if most := initial*12/10 + good; sends > most {
					t.Errorf("%d sends, want at most 1.2 of the first attempts and what succeeded: %d", sends, most)
				}
				if r.retries < initial*15/100 {
					t.Errorf("%d retries of %d first attempts: the budget is not used", r.retries, initial)
				}
			})
		})
	}
	t.Run("all fail", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &memstore.Store{}
			putOff(t, s, ringtest.Size(500, 5000))
			r := &receiver{respond: always(503)}
			e := webhook.Endpoint{ID: "a", URL: "https://example.com/"}
			e.Policy.Breaker.Disabled = true
			run(t, s, dispatch.Config{Transport: r}, e)
			time.Sleep(10 * time.Minute)
			// Three in each window of 30 s, which may end anywhere.
			if n := r.since(time.Time{}); n > 3*21 || n < 3*15 {
				t.Errorf("%d sends in ten minutes, want about the floor of three in each 30 s", n)
			}
		})
	})
}
