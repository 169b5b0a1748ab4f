package consume_test

import (
	"container/heap"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
)

// broker hands out events, those that are to come again when they are due.
type broker struct {
	mu    sync.Mutex
	fresh []consume.Event
	later later
	takes []time.Time // when an event was taken
}

type again struct {
	e  consume.Event
	at time.Time
}

type later []again

func (l later) Len() int           { return len(l) }
func (l later) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l later) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *later) Push(x any)        { *l = append(*l, x.(again)) }
func (l *later) Pop() any {
	x := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return x
}

func (b *broker) take() (e consume.Event, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.later) > 0 && !b.later[0].at.After(time.Now()):
		e = heap.Pop(&b.later).(again).e
	case len(b.fresh) > 0:
		e, b.fresh = b.fresh[0], b.fresh[1:]
	default:
		return e, false
	}
	b.takes = append(b.takes, time.Now())
	return e, true
}

// work handles events as an adapter does, until ctx ends.
func (b *broker) work(ctx context.Context, c *consume.Consumer) {
	for c.Ready(ctx) == nil {
		e, ok := b.take()
		if !ok {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if d := c.Consume(ctx, e); !d.Acknowledge() {
			b.mu.Lock()
			heap.Push(&b.later, again{e, d.At})
			b.mu.Unlock()
		}
	}
}

// partial is what became of events whose handler fails by luck. The luck is each
// attempt's own: the same for all who try it.
type partial struct {
	allowed       int // events that the attempts allow to be done
	at            []time.Duration
	sends, firsts int
	takes         []time.Time
	began         time.Time
}

func (p *partial) done(share float64) time.Duration {
	if n := int(share * float64(p.allowed)); n <= len(p.at) {
		return p.at[n-1]
	}
	return 1 << 62
}

func luck(id string, attempt int) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, id)
	return rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64()
}

// handle has eight workers handle n events, for a time.
func handle(t *testing.T, p forbear.Policy, n int, share func(time.Duration) float64, watch time.Duration, opts ...forbear.Option) (got partial) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		fixed := share(0)
		for i := range n {
			e := event(fmt.Sprint("e", i))
			b.fresh = append(b.fresh, e)
			if slices.ContainsFunc([]int{1, 2, 3, 4, 5, 6}, func(a int) bool { return luck(e.ID, a) >= fixed }) {
				got.allowed++
			}
		}
		var mu sync.Mutex
		tries := map[string]int{}
		got.began = time.Now()
		o := options(t, &letters{})
		o.Retryer = retryer(t, p, opts...)
		c := consumer(t, o, func(_ context.Context, e consume.Event) error {
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			tries[e.ID]++
			if got.sends++; tries[e.ID] == 1 {
				got.firsts++
			}
			if luck(e.ID, tries[e.ID]) < share(time.Since(got.began)) {
				return flaky()
			}
			got.at = append(got.at, time.Since(got.began))
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() { b.work(ctx, c) })
		}
		time.Sleep(watch)
		cancel()
		workers.Wait()
		slices.Sort(got.at)
		got.takes = b.takes
	})
	return got
}

func always(share float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return share }
}

// TestPartialFailure: a dependency that fails a part of the attempts has its
// events done nearly as soon as by somebody who has no budget and no breaker,
// and with as few sends.
func TestPartialFailure(t *testing.T) {
	for _, base := range []time.Duration{50 * time.Millisecond, time.Second} {
		policy := forbear.Policy{Backoff: forbear.Backoff{Base: base}}
		unbound := policy
		unbound.Breaker.Disabled, unbound.Budget.MinRetries = true, 1<<30
		for _, share := range []float64{0.15, 0.25, 0.30, 0.40} {
			t.Run(fmt.Sprintf("%.0f %%, base %v", 100*share, base), func(t *testing.T) {
				middle := forbear.WithDraw(func() float64 { return 0.5 }) // so that two runs can be compared by a few late ones
				ideal := handle(t, unbound, 1000, always(share), 10*time.Minute, middle)
				got := handle(t, policy, 1000, always(share), 10*time.Minute, middle)
				t.Logf("99 %% after %v, ideally %v; all after %v, ideally %v; sends %d, ideally %d",
					got.done(0.99), ideal.done(0.99), got.done(1), ideal.done(1), got.sends, ideal.sends)
				if len(ideal.at) != ideal.allowed || len(got.at) != got.allowed {
					t.Errorf("%d and ideally %d done of the %d that the attempts allow", len(got.at), len(ideal.at), got.allowed)
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

// TestOpenBreakerStopsFetching: the broker keeps what cannot be done.
func TestOpenBreakerStopsFetching(t *testing.T) {
	const outage = 10 * time.Minute
	got := handle(t, forbear.Policy{}, 1000, func(at time.Duration) float64 {
		if at < outage {
			return 1
		}
		return 0
	}, 30*time.Minute)
	n := 0
	for _, at := range got.takes {
		if at.Sub(got.began) < outage {
			n++
		}
	}
	t.Logf("%d events taken and %d attempts in an outage of %v; all %d done %v after it", n, got.sends-1000, outage, len(got.at), got.at[len(got.at)-1]-outage)
	// 20 open it, eight are under way; each probing lets a few through.
	if n > 20+8+10*8+40 {
		t.Errorf("%d events taken in the outage", n)
	}
	if len(got.at) != 1000 || got.at[999] > outage+time.Minute {
		t.Errorf("%d of 1000 done, the last %v after the outage", len(got.at), got.at[len(got.at)-1]-outage)
	}
	if got.sends > 1000+120 {
		t.Errorf("%d attempts for 1000 events", got.sends)
	}
}
