package forbear_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/pace"
	"github.com/forbear-go/forbear/reason"
)

var errLimited = errors.New("too many requests")

// limited is a Retryer whose pacer has learned that everything is refused for 20 s:
// a call that has less is refused at once.
func limited(t *testing.T, opts ...forbear.Option) (*forbear.Retryer, *pace.Pacer) {
	t.Helper()
	p := &pace.Pacer{}
	for range 8 {
		p.Throttled(time.Now(), time.Now(), 20*time.Second)
	}
	return quiet(t, forbear.Policy{}, append(opts, forbear.WithPacer(p))...), p
}

// A call whose turn comes too late is refused at once, and says when a new one may come.
// It is no failure, and no initial request.
func TestPacedCallIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped []forbear.Stopped
		r, _ := limited(t, forbear.WithObserver(&forbear.Observer{
			Stopped: func(_ context.Context, e forbear.Stopped) { stopped = append(stopped, e) },
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := r.Level(time.Now())
		began := time.Now()
		for range 100 {
			err := r.Do(ctx, func(context.Context) error { t.Error("an attempt was made"); return nil })
			e, ok := errors.AsType[*forbear.Error](err)
			if !ok || !errors.Is(err, forbear.ErrPaced) || e.Reason != reason.Paced || e.Attempts != 0 {
				t.Fatalf("got %v, want a paced call", err)
			}
			if in := e.Until.Sub(began); in < 19*time.Second || in > 21*time.Second {
				t.Fatalf("until %v from now, want 20s", in)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("it took %v", time.Since(began))
		}
		if r.Breaker().State() != breaker.Closed || r.Breaker().FailureRate(time.Now()) != 0 {
			t.Errorf("breaker %v at %v, want it closed without a failure", r.Breaker().State(), r.Breaker().FailureRate(time.Now()))
		}
		if after := r.Level(time.Now()); after != before {
			t.Errorf("the budget counted: %+v, before %+v", after, before)
		}
		if len(stopped) != 100 || !stopped[0].Reason.Suppressed() || stopped[0].Attempts != 0 {
			t.Errorf("observed %d stops", len(stopped))
		}
	})
}

// A call that has the time waits for its turn, and leaves an attempt the time that it
// needs.
func TestPacedCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := limited(t)
		began := time.Now()
		var at time.Duration
		if err := r.Do(t.Context(), func(context.Context) error { at = time.Since(began); return nil }); err != nil {
			t.Fatal(err)
		}
		if at == 0 {
			t.Error("the call did not wait")
		}
	})
}

// A caller that leaves the line is a canceled call, not a paced one, and the place in the line
// is free.
func TestPacedCallMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := limited(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		err := r.Do(ctx, func(context.Context) error { t.Error("an attempt was made"); return nil })
		if !errors.Is(err, forbear.ErrCanceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want a canceled call", err)
		}
		if n := p.Reading().Waiting; n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// Probes of a breaker that was open go out whatever the pacer says: else neither would
// ever learn that the dependency is well.
func TestProbesAreNotPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := limited(t)
		r.Breaker().Force(breaker.Open, "test", time.Now())
		r.Breaker().Release()
		time.Sleep(6 * time.Second)
		p.Turn(time.Now(), time.Now(), time.Now()) // the pacer's own probe is not due
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Do(ctx, func(context.Context) error { return nil }); err != nil {
			t.Errorf("got %v, want a probe", err)
		}
	})
}

// A retry waits for the later of its backoff and its turn, not for one after the other.
func TestRetryWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace.Pacer{}
		r := quiet(t, forbear.Policy{}, forbear.WithPacer(p), forbear.WithRand(func() float64 { return 0 }),
			forbear.WithClassifier(func(err error) (forbear.Failure, bool) {
				return forbear.Failure{Class: forbear.ClassThrottled, Type: "http_429", Err: err, Hint: forbear.Hint{Floor: time.Second}}, errors.Is(err, errLimited)
			}))
		var at []time.Duration
		began := time.Now()
		var others sync.WaitGroup // younger calls, in line before the backoff is over
		for range 50 {
			others.Go(func() {
				time.Sleep(990 * time.Millisecond)
				_ = r.Do(t.Context(), func(context.Context) error { return nil })
			})
		}
		err := r.Do(t.Context(), func(context.Context) error {
			if at = append(at, time.Since(began)); len(at) == 1 {
				for range 7 { // others are refused beside it
					p.Throttled(time.Now(), time.Now(), 0)
				}
				return errLimited
			}
			return nil
		})
		others.Wait()
		if err != nil || len(at) != 2 {
			t.Fatalf("%v after attempts at %v", err, at)
		}
		if at[1] < time.Second || at[1] > 1100*time.Millisecond {
			t.Errorf("the retry came after %v, want it before the younger ones", at[1])
		}
	})
}

// Without a refusal a pacer costs a success nothing that can be counted.
func TestPacedSuccessAllocatesNothing(t *testing.T) {
	r, ctx := quiet(t, forbear.Policy{}, forbear.WithPacer(&pace.Pacer{})), requestContext(t)
	op := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(200, func() { _ = r.Do(ctx, op) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
