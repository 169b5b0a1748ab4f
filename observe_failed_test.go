package forbear_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// lists returns an observer of the lists of failed attempts that the events have.
func lists(wanted bool) (*forbear.Observer, *[][]forbear.FailedAttempt) {
	var seen [][]forbear.FailedAttempt
	keep := func(i forbear.Info) { seen = append(seen, slices.Clone(i.Failed)) }
	return &forbear.Observer{
		ListsFailed:    wanted,
		RetryScheduled: func(_ context.Context, e forbear.RetryScheduled) { keep(e.Info) },
		Succeeded:      func(_ context.Context, e forbear.Succeeded) { keep(e.Info) },
		Stopped:        func(_ context.Context, e forbear.Stopped) { keep(e.Info) },
	}, &seen
}

// An event has the failed attempts of its own call, each with its time and its decision.
func TestEventsListFailedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, seen := lists(true)
		r := quiet(t, forbear.Policy{}, forbear.WithObserver(o), forbear.WithRand(half), forbear.WithBudget(unlimited()))
		began, calls := time.Now(), 0
		op := func(context.Context) error {
			calls++
			time.Sleep(time.Duration(calls) * 10 * time.Millisecond)
			if calls < 3 {
				return forbear.Retryable(errFlaky, forbear.Hint{})
			}
			return nil
		}
		if err := r.Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if len(*seen) != 3 || len((*seen)[0]) != 1 || len((*seen)[1]) != 2 || len((*seen)[2]) != 2 {
			t.Fatalf("got %+v", *seen)
		}
		want := []struct{ after, took, wait time.Duration }{
			{0, 10 * time.Millisecond, 500 * time.Millisecond}, {510 * time.Millisecond, 20 * time.Millisecond, time.Second},
		}
		for i, a := range (*seen)[2] {
			if a.Number != i+1 || a.At.Sub(began) != want[i].after || a.Took != want[i].took || a.Wait != want[i].wait ||
				a.Reason != reason.Retryable || a.Failure.Type != "retryable_error" {
				t.Errorf("got %+v, want %+v", a, want[i])
			}
		}
		if err := r.Do(t.Context(), op); err != nil || len((*seen)[3]) != 0 {
			t.Errorf("the next call has %+v, and %v", (*seen)[3], err)
		}
	})
}

// The last of the list says why no retry follows. Without an observer that reads it there
// is none.
func TestListOfAFailedCall(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		o, seen := lists(wanted)
		r := quiet(t, forbear.Policy{}, forbear.WithObserver(o))
		_ = r.Do(t.Context(), func(context.Context) error { return forbear.Terminal(errFlaky) })
		got := (*seen)[0]
		if !wanted && got != nil || wanted && (len(got) != 1 || got[0].Reason != reason.Terminal || got[0].Wait != 0) {
			t.Errorf("wanted %v: got %+v", wanted, got)
		}
	}
}

// Durable work lists what this process has tried; a retry that was postponed and is then
// granted has its wait.
func TestDurableCallListsItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, seen := lists(true)
		r := quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithObserver(o), forbear.WithBudget(unlimited()), forbear.WithCallerDeadLetter())
		call := edge.Durable(t.Context(), r, edge.Progress{})
		call.Ask(t.Context(), time.Now())
		time.Sleep(time.Second)
		r.Breaker().Force(breaker.Open, "jane", time.Now())
		d := call.Fail(t.Context(), forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, time.Second, time.Now())
		call.Postpone(t.Context(), d, time.Now())
		r.Breaker().Force(breaker.Closed, "jane", time.Now())
		d = call.Ask(t.Context(), time.Now())
		if len(*seen) != 2 || len((*seen)[0]) != 1 || len((*seen)[1]) != 1 {
			t.Fatalf("got %+v", *seen)
		}
		if a := (*seen)[0][0]; a.Reason != reason.BreakerOpen || a.Took != time.Second || a.Wait != 0 {
			t.Errorf("postponed: got %+v", a)
		}
		if a := (*seen)[1][0]; a.Reason != reason.Retryable || a.Wait != d.Wait || d.Wait == 0 {
			t.Errorf("granted with %v: got %+v", d.Wait, a)
		}
	})
}

// However many attempts a call makes, it keeps the latest sixteen.
func TestListIsBounded(t *testing.T) {
	o, seen := lists(true)
	r := quiet(t, forbear.Policy{Kind: forbear.Event, Breaker: breaker.Policy{Disabled: true}}, forbear.WithObserver(o), forbear.WithBudget(unlimited()), forbear.WithCallerDeadLetter())
	call := edge.Durable(t.Context(), r, edge.Progress{})
	for range 40 {
		call.Fail(t.Context(), forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, 0, time.Now())
	}
	last := (*seen)[len(*seen)-1]
	if len(last) != 16 || last[15].Number != 40 {
		t.Errorf("got %d attempts", len(last))
	}
}
