package consume_test

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/edge/partial"
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

// take returns an event, or how long it may be until there is one.
func (b *broker) take() (e consume.Event, idle time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.later) > 0 && !b.later[0].at.After(time.Now()):
		e = heap.Pop(&b.later).(again).e
	case len(b.fresh) > 0:
		e, b.fresh = b.fresh[0], b.fresh[1:]
	case len(b.later) > 0:
		return e, min(time.Until(b.later[0].at), 50*time.Millisecond)
	default:
		return e, 50 * time.Millisecond
	}
	b.takes = append(b.takes, time.Now())
	return e, 0
}

// work handles events as an adapter does, until ctx ends.
func (b *broker) work(ctx context.Context, c *consume.Consumer) {
	for c.Ready(ctx) == nil {
		e, idle := b.take()
		if idle > 0 {
			time.Sleep(idle)
			continue
		}
		if d := c.Consume(ctx, e); !d.Acknowledge() {
			b.mu.Lock()
			heap.Push(&b.later, again{e, d.At})
			b.mu.Unlock()
		}
	}
}

// handle has eight workers handle a thousand events, for a time. It returns what
// became of them, and when events were taken, after the beginning.
func handle(t *testing.T, p forbear.Policy, share func(time.Duration) float64, watch time.Duration, opts ...forbear.Option) (w *partial.Work, takes []time.Duration) {
	t.Helper()
	w = &partial.Work{Share: share}
	synctest.Test(t, func(t *testing.T) {
		w.Begin()
		b, began := &broker{}, time.Now()
		for _, id := range events() {
			b.fresh = append(b.fresh, event(id))
		}
		o := options(t, &letters{})
		o.Retryer = retryer(t, p, opts...)
		c := consumer(t, o, func(_ context.Context, e consume.Event) error {
			time.Sleep(5 * time.Millisecond)
			if w.Try(t, e.ID) {
				return nil
			}
			return flaky()
		})
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() { b.work(ctx, c) })
		}
		time.Sleep(watch)
		cancel()
		workers.Wait()
		for _, at := range b.takes {
			takes = append(takes, at.Sub(began))
		}
	})
	return w, takes
}

func events() (ids []string) {
	for i := range 1000 {
		ids = append(ids, fmt.Sprint("e", i))
	}
	return ids
}

// TestPartialFailure: a dependency that fails a part of the attempts has its
// events done nearly as soon as by somebody who has no budget and no breaker,
// and with as few sends.
func TestPartialFailure(t *testing.T) {
	middle := forbear.WithRand(func() float64 { return 0.5 }) // so that two runs can be compared by a few late ones
	for _, base := range []time.Duration{50 * time.Millisecond, time.Second} {
		policy := forbear.Policy{Backoff: forbear.Backoff{Base: base}}
		unbound := policy
		unbound.Breaker.Disabled = true
		for _, share := range []float64{0.15, 0.25, 0.30, 0.40} {
			t.Run(fmt.Sprintf("%.0f %%, base %v", 100*share, base), func(t *testing.T) {
				ideal, _ := handle(t, unbound, partial.Always(share), 10*time.Minute, middle, forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))
				got, _ := handle(t, policy, partial.Always(share), 10*time.Minute, middle)
				got.Beside(t, ideal, got.Allowed(events(), 6))
			})
		}
	}
}

// TestOpenBreakerStopsFetching: the broker keeps what cannot be done.
func TestOpenBreakerStopsFetching(t *testing.T) {
	const outage = 10 * time.Minute
	got, takes := handle(t, forbear.Policy{}, func(since time.Duration) float64 {
		if since < outage {
			return 1
		}
		return 0
	}, 30*time.Minute)
	n := 0
	for _, at := range takes {
		if at < outage {
			n++
		}
	}
	t.Logf("%d events taken and %d attempts in an outage of %v; all %d done %v after it", n, got.Sends-1000, outage, len(got.Arrive), got.By(1000)-outage)
	// 20 open it, eight are under way; each of some twenty probings lets a few
	// through.
	if n > 150 || got.Sends > 1120 {
		t.Errorf("%d events taken in the outage, %d attempts for 1000 events", n, got.Sends)
	}
	if len(got.Arrive) != 1000 || got.By(1000) > outage+time.Minute {
		t.Errorf("%d of 1000 done, the last %v after the outage", len(got.Arrive), got.By(1000)-outage)
	}
}
