package forbear_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
)

// One layer retries: what runs inside a retry makes a single attempt, and what
// a layer below has given up is final above.
func TestNestedCalls(t *testing.T) {
	bubble(t, "inside a retry there is one attempt", func(t *testing.T) {
		outer := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		inner := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		var perAttempt []int
		first := true
		err := outer.Do(t.Context(), func(ctx context.Context) error {
			if first { // fails before it reaches the inner layer
				first = false
				return failing(ctx)
			}
			op, runs := failTimes(9, forbear.Retryable(errFlaky, forbear.Hint{}))
			err := inner.Do(ctx, op)
			perAttempt = append(perAttempt, *runs)
			if !errors.Is(err, forbear.ErrInner) {
				t.Errorf("inner: got %v", err)
			}
			return err
		})
		if len(perAttempt) != 3 || perAttempt[0] != 1 || perAttempt[2] != 1 {
			t.Errorf("inner attempts per outer retry: %v, want 1, 1, 1", perAttempt)
		}
		if !errors.Is(err, forbear.ErrExhausted) {
			t.Errorf("outer: got %v", err)
		}
	})
	bubble(t, "what is exhausted below is final above", func(t *testing.T) {
		outer := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		inner := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		op, runs := failTimes(99, forbear.Retryable(errFlaky, forbear.Hint{}))
		err := outer.Do(t.Context(), func(ctx context.Context) error { return inner.Do(ctx, op) })
		if *runs != 4 || !errors.Is(err, forbear.ErrExhaustedBelow) || !errors.Is(err, errFlaky) {
			t.Errorf("%d attempts, want 4 (%v)", *runs, err)
		}
	})
	bubble(t, "even when it is marked again", func(t *testing.T) {
		outer := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		inner := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		op, runs := failTimes(99, forbear.Retryable(errFlaky, forbear.Hint{}))
		err := outer.Do(t.Context(), func(ctx context.Context) error {
			return forbear.Retryable(inner.Do(ctx, op), forbear.Hint{})
		})
		if *runs != 4 || !errors.Is(err, forbear.ErrExhaustedBelow) {
			t.Errorf("%d attempts, want 4 (%v)", *runs, err)
		}
	})
	bubble(t, "a durable layer may come back", func(t *testing.T) {
		outer := quiet(t, forbear.Policy{Kind: forbear.Event, MaxRetries: 1}, forbear.WithBudget(unlimited()), forbear.WithCallerDeadLetter())
		inner := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		op, runs := failTimes(99, forbear.Retryable(errFlaky, forbear.Hint{}))
		_ = outer.Do(t.Context(), func(ctx context.Context) error { return inner.Do(ctx, op) })
		if *runs != 5 { // four, then the single one of an inner layer
			t.Errorf("%d attempts, want 5", *runs)
		}
	})
	bubble(t, "a disabled layer below leaves the retrying to this one", func(t *testing.T) {
		outer := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		inner := quiet(t, forbear.Policy{Disabled: true})
		op, runs := failTimes(99, forbear.Retryable(errFlaky, forbear.Hint{}))
		err := outer.Do(t.Context(), func(ctx context.Context) error { return inner.Do(ctx, op) })
		if *runs != 4 || !errors.Is(err, forbear.ErrExhausted) {
			t.Errorf("%d attempts, want 4 (%v)", *runs, err)
		}
	})
}

func TestAttemptInTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var numbers []int
		_ = quiet(t, forbear.Policy{}).Do(t.Context(), func(c context.Context) error {
			n, _ := forbear.AttemptFrom(c)
			numbers = append(numbers, n)
			return failing(c)
		})
		if len(numbers) != 4 || numbers[0] != 0 || numbers[1] != 2 || numbers[3] != 4 {
			t.Errorf("got %v, want 0 2 3 4", numbers)
		}
	})
}

func TestBudgetSharedByManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.NewTokenBucket(10, 0)
		var mu sync.Mutex
		attempts, refused := 0, 0
		var wg sync.WaitGroup
		for range 50 {
			r := quiet(t, forbear.Policy{}, forbear.WithBudget(b))
			wg.Go(func() {
				err := r.Do(t.Context(), func(ctx context.Context) error {
					mu.Lock()
					attempts++
					mu.Unlock()
					return failing(ctx)
				})
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, forbear.ErrBudgetExhausted) {
					refused++
				}
			})
		}
		wg.Wait()
		if attempts != 60 {
			t.Errorf("%d attempts, want 50 and the budget's 10", attempts)
		}
		if refused < 40 {
			t.Errorf("%d calls were refused, want at least 40", refused)
		}
	})
}

// quota is a bucket that learns how calls end: it notes what it is told.
type quota struct {
	*budget.TokenBucket
	failed, succeeded, retries int
}

func (q *quota) Failed(time.Time) { q.failed++ }

func (q *quota) Succeeded(_ time.Time, retries int, _ budget.Cost) {
	q.succeeded++
	q.retries += retries
}

// A budget that counts outcomes learns from Do how calls end.
func TestDoFeedsTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &quota{TokenBucket: budget.NewTokenBucket(100, 0)}
		r := quiet(t, forbear.Policy{}, forbear.WithBudget(b))
		is := func(what string, failed, succeeded, retries int) {
			t.Helper()
			if b.failed != failed || b.succeeded != succeeded || b.retries != retries {
				t.Errorf("%s: %d failed, %d succeeded after %d retries, want %d, %d, %d", what, b.failed, b.succeeded, b.retries, failed, succeeded, retries)
			}
		}
		_ = r.Do(t.Context(), failing)
		is("three retries in vain", 4, 0, 0)
		op, _ := failTimes(2, forbear.Retryable(errFlaky, forbear.Hint{}))
		_ = r.Do(t.Context(), op)
		is("success at the second retry", 6, 1, 2)
		_ = r.Do(t.Context(), func(context.Context) error { return nil })
		is("success at once", 6, 2, 2)
	})
}

// A quota such as the AWS SDKs' gets back what the last retry of a good call cost.
func TestDoPaysBackTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newAWS(500, awsCosts{5, 10, 20})
		r := quiet(t, forbear.Policy{}, forbear.WithBudget(b))
		tokens := func() float64 { l := b.Level(time.Now()); return l.Allowed - l.Used }
		_ = r.Do(t.Context(), failing)
		if got := tokens(); got != 485 {
			t.Errorf("three retries in vain: %v tokens, want 485", got)
		}
		op, _ := failTimes(2, forbear.Retryable(errFlaky, forbear.Hint{}))
		_ = r.Do(t.Context(), op)
		if got := tokens(); got != 480 {
			t.Errorf("success at the second retry: %v tokens, want 480", got)
		}
		_ = r.Do(t.Context(), func(context.Context) error { return nil })
		if got := tokens(); got != 481 {
			t.Errorf("success at once: %v tokens, want 481", got)
		}
	})
}

func TestRefund(t *testing.T) {
	now := epoch
	for name, b := range map[string]budget.Budget{
		"ratio":   budget.NewRatio(budget.Policy{MinRetries: 1, Window: time.Minute}),
		"bucket":  budget.NewTokenBucket(1, 0),
		"aws":     newAWS(5, awsCosts{Transient: 5}),
		"finagle": newFinagle(time.Second, 1, 0.2),
	} {
		r := quiet(t, forbear.Policy{}, forbear.WithBudget(b))
		s := forbear.State{}
		d := r.Next(&s, transient, now)
		if !d.Retry {
			t.Fatalf("%s: first: got %+v", name, d)
		}
		if again := r.Next(&forbear.State{}, transient, now); again.Retry {
			t.Errorf("%s: a second retry from a budget of one", name)
		} else {
			edge.Refund(r, again, now) // a refusal gives nothing back
		}
		if again := r.Next(&forbear.State{}, transient, now); again.Retry {
			t.Errorf("%s: refunding a refusal gave a retry", name)
		}
		edge.Refund(r, d, now)
		if again := r.Next(&forbear.State{}, transient, now); !again.Retry {
			t.Errorf("%s: after the refund: got %+v", name, again)
		}
	}
}
