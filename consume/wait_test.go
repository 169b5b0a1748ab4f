package consume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
)

// A new process knows how many attempts the old one has made.
func TestAttemptsSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		o := options(t, q)
		n := 0
		h := func(context.Context, consume.Event) error { n++; return flaky() }
		d := consumer(t, o, h).Consume(t.Context(), event("e1"))
		for d.Action == consume.RetryAt {
			time.Sleep(time.Until(d.At))
			o.Retryer = retryer(t, forbear.Policy{})
			d = consumer(t, o, h).Consume(t.Context(), event("e1"))
		}
		if l := q.only(t); d.Action != consume.DeadLettered || n != 6 || l.Attempts != 6 || len(l.History) != 6 {
			t.Errorf("%d runs, %+v, letter %+v", n, d, l)
		}
	})
}

// A budget that says no puts the retry off and consumes no attempt; the time
// goes on.
func TestBudgetPutsOffAndConsumesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		o := options(t, q)
		o.InPlace = -1
		budget := &gateBudget{}
		r, err := forbear.New("orders", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithBudget(budget))
		if err != nil {
			t.Fatal(err)
		}
		o.Retryer = r
		n := 0
		c := consumer(t, o, func(context.Context, consume.Event) error {
			if n++; n == 1 {
				return flaky()
			}
			return nil
		})
		var d consume.Decision
		for range 20 {
			d = c.Consume(t.Context(), event("e1"))
			if d.Action != consume.RetryAt || n != 1 || d.Reason != "budget_exhausted" {
				t.Fatalf("%d runs, %+v", n, d)
			}
			time.Sleep(time.Until(d.At))
		}
		budget.open = true
		if d = deliver(t, c, event("e1")); d.Action != consume.Ack || n != 2 {
			t.Errorf("%d runs, %+v", n, d)
		}

		time.Sleep(2 * time.Minute) // what that success has earned is forgotten
		budget.open, n = false, 0
		start := time.Now()
		for d.Action = consume.RetryAt; d.Action == consume.RetryAt; d = c.Consume(t.Context(), event("e2")) {
			time.Sleep(time.Until(d.At))
		}
		l := q.only(t)
		if n != 1 || d.Reason != "deadline" || l.Postponed < 100 || l.Attempts != 1 || time.Since(start) > 24*time.Hour || time.Since(start) < 23*time.Hour {
			t.Errorf("%d runs in %v, %+v, letter %+v", n, time.Since(start), d, l)
		}
	})
}

// gateBudget grants retries while it is open.
type gateBudget struct{ open bool }

func (b *gateBudget) Request(time.Time)                 {}
func (b *gateBudget) Spend(time.Time, budget.Cost) bool { return b.open }
func (b *gateBudget) Refund(time.Time, budget.Cost)     {}
func (b *gateBudget) Level(time.Time) (l budget.Level)  { return l }

// Events that an open breaker has put off bring it to the test themselves: no
// new one has to come.
func TestBreakerRecoversByWaitingEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace = -1
		down, n := true, 0
		c := consumer(t, o, func(context.Context, consume.Event) error {
			n++
			if down {
				return flaky()
			}
			return nil
		})
		at := map[string]time.Time{}
		for i := range 40 {
			e := event(fmt.Sprint(i))
			d := c.Consume(t.Context(), e)
			at[e.ID] = d.At
		}
		if s := o.Retryer.Breaker().State(); s != breaker.Open {
			t.Fatalf("breaker %v after %d runs", s, n)
		}
		down = false
		start := time.Now()
		for len(at) > 0 && time.Since(start) < time.Hour {
			for id, due := range at {
				if due.After(time.Now()) {
					continue
				}
				if d := c.Consume(t.Context(), event(id)); d.Action == consume.RetryAt {
					at[id] = d.At
				} else {
					delete(at, id)
				}
			}
			time.Sleep(time.Second)
		}
		if len(at) > 0 || o.Retryer.Breaker().State() != breaker.Closed {
			t.Errorf("%d events still wait, breaker %v", len(at), o.Retryer.Breaker().State())
		}
	})
}

// A broker that brings the event again before its time, after a restart say,
// does not shorten the wait.
func TestEarlyEventWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace = -1
		n := 0
		c := consumer(t, o, func(ctx context.Context, _ consume.Event) error {
			if n++; consume.Attempt(ctx) != n || consume.Fence(ctx) < int64(n) {
				t.Errorf("run %d is attempt %d under fence %d", n, consume.Attempt(ctx), consume.Fence(ctx))
			}
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: time.Hour})
		})
		first := c.Consume(t.Context(), event("e1"))
		for range 20 {
			time.Sleep(time.Minute)
			if d := c.Consume(t.Context(), event("e1")); d.Action != consume.RetryAt || !d.Duplicate || d.At.Sub(first.At).Abs() > time.Second || n != 1 {
				t.Fatalf("%d runs, %+v", n, d)
			}
		}
		time.Sleep(time.Until(first.At))
		if c.Consume(t.Context(), event("e1")); n != 2 {
			t.Errorf("%d runs at its time", n)
		}
	})
}

// What the dependency asks for is a floor also when the budget puts the retry
// off.
func TestHintOutlastsThePostponement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace = -1
		budget := &gateBudget{}
		o.Retryer = forbear.Must(forbear.New("orders", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithBudget(budget)))
		var runs []time.Time
		c := consumer(t, o, func(context.Context, consume.Event) error {
			if runs = append(runs, time.Now()); len(runs) == 1 {
				return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 10 * time.Minute})
			}
			return nil
		})
		d := c.Consume(t.Context(), event("e1"))
		if time.Until(d.At) < 10*time.Minute {
			t.Errorf("comes again in %v", time.Until(d.At))
		}
		time.Sleep(time.Minute) // a broker that comes too early
		budget.open = true
		if d = deliver(t, c, event("e1")); d.Action != consume.Ack || runs[1].Sub(runs[0]) < 10*time.Minute {
			t.Errorf("%+v, second run %v after the first", d, runs[1].Sub(runs[0]))
		}
	})
}

// an event that comes back after its day is not tried again.
func TestLateEventIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		o := options(t, q)
		o.InPlace = -1
		n := 0
		c := consumer(t, o, func(context.Context, consume.Event) error { n++; return flaky() })
		c.Consume(t.Context(), event("e1"))
		time.Sleep(25 * time.Hour)
		if d := c.Consume(t.Context(), event("e1")); d.Action != consume.DeadLettered || d.Reason != "deadline" || n != 1 {
			t.Errorf("%+v after %d runs", d, n)
		}
		if l := q.only(t); l.Attempts != 1 || l.ErrorType == "" {
			t.Errorf("got %+v", l)
		}
	})
}

// The lease is held while the event waits in place.
func TestLeaseIsHeldDuringTheWaitInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.Lease, o.InPlaceFor = 200*time.Millisecond, time.Minute
		n := 0
		c := consumer(t, o, func(context.Context, consume.Event) error {
			if n++; n == 1 {
				return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 5 * time.Second})
			}
			return nil
		})
		first := make(chan consume.Decision)
		go func() { first <- c.Consume(t.Context(), event("e1")) }()
		time.Sleep(4 * time.Second)
		if d := c.Consume(t.Context(), event("e1")); d.Reason != "in_progress" {
			t.Errorf("a duplicate during the wait: %+v", d)
		}
		if d := <-first; d.Action != consume.Ack || n != 2 {
			t.Errorf("%+v after %d runs", d, n)
		}
	})
}

// A handler that is stopped with its process loses no attempt and no event.
func TestShutdownGivesBack(t *testing.T) {
	o := options(t, &letters{})
	ctx, stop := context.WithCancel(t.Context())
	c := consumer(t, o, func(ctx context.Context, _ consume.Event) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	})
	d := c.Consume(ctx, event("e1"))
	if d.Acknowledge() || d.Reason != "canceled" {
		t.Fatalf("got %+v", d)
	}
	n := 0
	c = consumer(t, o, func(context.Context, consume.Event) error { n++; return nil })
	if d := c.Consume(t.Context(), event("e1")); d.Action != consume.Ack || n != 1 {
		t.Errorf("%+v after %d runs", d, n)
	}
}

// brittle is a store whose writes fail while it is broken.
type brittle struct {
	idempotency.Store
	broken bool
}

func (b *brittle) Release(ctx context.Context, t idempotency.Token) error {
	if b.broken {
		return errors.New("disk full")
	}
	return b.Store.Release(ctx, t)
}

// What could be neither written nor kept is told, and costs a lease, not the event.
func TestStoreBreaksInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		store := &brittle{o.Store, true}
		o.Store, o.InPlace = store, -1
		o.Backlog = &idempotency.Backlog{Store: store, MaxEntries: -1}
		n := 0
		c := consumer(t, o, func(context.Context, consume.Event) error {
			if n++; n == 1 {
				return flaky()
			}
			return nil
		})
		d := c.Consume(t.Context(), event("e1"))
		if d.Action != consume.RetryAt || d.Err == nil || !strings.Contains(d.Err.Error(), "disk full") {
			t.Errorf("got %+v", d)
		}
		store.broken = false
		if d = deliver(t, c, event("e1")); d.Action != consume.Ack || n != 2 {
			t.Errorf("%+v after %d runs", d, n)
		}
	})
}
