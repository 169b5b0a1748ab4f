package forbear_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// hang waits for the end of its context.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestTotalEndsAHangingOperation: the total bounds the attempts too, without a
// per-attempt timeout. Who is late is the dependency, not the caller.
func TestTotalEndsAHangingOperation(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   func(context.Context) error
	}{
		{"waits for Done", hang},
		{"returns the cause", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}},
		{"asks for the error now and then", func(ctx context.Context) error {
			for ctx.Err() == nil {
				time.Sleep(500 * time.Millisecond)
			}
			return ctx.Err()
		}},
		{"derives a context", func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return hang(ctx)
		}},
		{"knows the deadline alone", func(ctx context.Context) error {
			d, ok := ctx.Deadline()
			if !ok {
				return errFlaky
			}
			time.Sleep(time.Until(d))
			return context.DeadlineExceeded
		}},
	} {
		for name, fail := range map[string]int{" at once": 0, " after a retry": 1} {
			bubble(t, tt.name+name, func(t *testing.T) {
				r := quiet(t, forbear.Policy{Total: 10 * time.Second}, forbear.WithRand(half))
				start, runs := time.Now(), 0
				err := r.Do(t.Context(), func(ctx context.Context) error {
					if runs++; runs <= fail {
						return forbear.Retryable(errFlaky, forbear.Hint{})
					}
					return tt.op(ctx)
				})
				e, ok := errors.AsType[*forbear.Error](err)
				if !ok || e.Reason != reason.Deadline || e.Type != "timeout" || e.Attempts != fail+1 {
					t.Errorf("got %#v, want an attempt's timeout and then the deadline", err)
				}
				if took := time.Since(start); took != 10*time.Second {
					t.Errorf("took %v, want the total of 10s", took)
				}
				if got := r.Breaker().FailureRate(time.Now()); got != 1 {
					t.Errorf("failure rate of the breaker: %v, want 1", got)
				}
			})
		}
	}
}

// TestTotalEndsAnItemsOperation: items of a batch have no per-attempt timeout either,
// unless the policy sets one.
func TestTotalEndsAnItemsOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{Kind: forbear.Batch, Total: 10 * time.Second})
		c, start := edge.Durable(t.Context(), r, edge.Progress{}), time.Now()
		if d := c.Ask(t.Context(), start); !d.Retry {
			t.Fatalf("got %s", d.Reason)
		}
		d, err := c.Try(t.Context(), hang)
		if d.Reason != reason.Deadline || d.Class != forbear.ClassTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %s, %v", d.Reason, err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v, want 10s", took)
		}
	})
}

// TestTotalWithoutEnd: a waived total of all the time there is does not wrap around.
func TestTotalWithoutEnd(t *testing.T) {
	w := forbear.WithWaiver(forbear.Waiver{Rule: "R-3", Dependency: "payments", Reason: "a report of days"})
	r := quiet(t, forbear.Policy{Total: math.MaxInt64}, w)
	if err := r.Do(context.Background(), func(ctx context.Context) error { return ctx.Err() }); err != nil {
		t.Error(err)
	}
}

// TestOperationContext: what an operation sees of its context.
func TestOperationContext(t *testing.T) {
	type key struct{}
	bubble(t, "the deadline is the earlier of the caller's and the total's", func(t *testing.T) {
		r := quiet(t, forbear.Policy{Total: 10 * time.Second})
		for _, tt := range []struct{ caller, want time.Duration }{{time.Minute, 10 * time.Second}, {5 * time.Second, 5 * time.Second}} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.caller)
			defer cancel()
			_ = r.Do(ctx, func(ctx context.Context) error {
				if d, ok := ctx.Deadline(); !ok || time.Until(d) != tt.want {
					t.Errorf("deadline in %v, want %v", time.Until(d), tt.want)
				}
				return nil
			})
		}
	})
	bubble(t, "an earlier deadline leaves the caller's context as it is", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = quiet(t, forbear.Policy{}).Do(ctx, func(got context.Context) error {
			if got != ctx {
				t.Errorf("got %v, want the caller's own", got)
			}
			return nil
		})
	})
	bubble(t, "the caller's end reaches it, with its cause", func(t *testing.T) {
		gone := errors.New("the user went home")
		for name, op := range map[string]func(context.Context) error{
			"waiting": hang,
			"asking": func(ctx context.Context) error {
				for ctx.Err() == nil {
					time.Sleep(700 * time.Millisecond)
				}
				return ctx.Err()
			},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(3*time.Second, func() { cancel(gone) })
			start := time.Now()
			err := quiet(t, forbear.Policy{}).Do(ctx, func(ctx context.Context) error {
				err := op(ctx)
				if context.Cause(ctx) != gone || err != context.Canceled {
					t.Errorf("%s: got %v because of %v", name, err, context.Cause(ctx))
				}
				return err
			})
			if !errors.Is(err, forbear.ErrCanceled) || time.Since(start) > 4*time.Second {
				t.Errorf("%s: got %v after %v", name, err, time.Since(start))
			}
		}
	})
	bubble(t, "it is over with the attempt, and stays so with its values", func(t *testing.T) {
		type kept struct {
			ctx  context.Context
			done <-chan struct{}
		}
		parent, cancel := context.WithCancel(t.Context())
		var all []kept
		r := quiet(t, forbear.Policy{})
		const n = 50
		for i := range n {
			_ = r.Do(context.WithValue(parent, key{}, i), func(ctx context.Context) error {
				k := kept{ctx: ctx}
				if i%2 == 0 {
					k.done = ctx.Done()
				}
				all = append(all, k)
				return ctx.Err()
			})
		}
		cancel() // later than their ends, so none speaks of it
		for i, k := range all {
			if k.ctx.Err() != context.Canceled || context.Cause(k.ctx) != context.Canceled {
				t.Errorf("%d: %v because of %v", i, k.ctx.Err(), context.Cause(k.ctx))
			}
			if k.ctx.Value(key{}) != i {
				t.Errorf("%d has the value %v", i, k.ctx.Value(key{}))
			}
			<-k.ctx.Done()
			if k.done != nil {
				<-k.done
			}
			derived, cancel := context.WithCancel(k.ctx)
			cancel()
			<-derived.Done()
		}
	})
	bubble(t, "it is over after a panic", func(t *testing.T) {
		var kept context.Context
		func() {
			defer func() { _ = recover() }()
			_ = quiet(t, forbear.Policy{}).Do(t.Context(), func(ctx context.Context) error {
				kept = ctx
				panic("a fault of the operation")
			})
		}()
		if kept.Err() != context.Canceled {
			t.Errorf("got %v, want it canceled", kept.Err())
		}
	})
	bubble(t, "what it said once it goes on saying", func(t *testing.T) {
		var kept context.Context
		_ = quiet(t, forbear.Policy{Total: time.Second}).Do(t.Context(), func(ctx context.Context) error {
			kept = ctx
			time.Sleep(2 * time.Second)
			return ctx.Err()
		})
		if kept.Err() != context.DeadlineExceeded || !errors.Is(context.Cause(kept), context.DeadlineExceeded) {
			t.Errorf("got %v because of %v", kept.Err(), context.Cause(kept))
		}
	})
}

// TestOperationContextStartsNoGoroutine: the standard library knows the context
// for one of its own.
func TestOperationContextStartsNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{})
		_ = r.Do(t.Context(), func(ctx context.Context) error {
			before := runtime.NumGoroutine()
			var cancels []context.CancelFunc
			for range 100 {
				_, cancel := context.WithCancel(ctx)
				cancels = append(cancels, cancel)
			}
			if n := runtime.NumGoroutine() - before; n > 50 {
				t.Errorf("100 derived contexts cost %d goroutines", n)
			}
			for _, cancel := range cancels {
				cancel()
			}
			return nil
		})
	})
}

// TestOperationContextIsSafe is for the race detector: goroutines that an
// operation has started use its context while it ends.
func TestOperationContextIsSafe(t *testing.T) {
	r := quiet(t, forbear.Policy{Breaker: breaker.Policy{Disabled: true}})
	var wg sync.WaitGroup
	for range 200 {
		_ = r.Do(t.Context(), func(ctx context.Context) error {
			for range 3 {
				wg.Go(func() {
					<-ctx.Done()
					if ctx.Err() != context.Canceled {
						t.Errorf("got %v", ctx.Err())
					}
				})
			}
			return nil
		})
	}
	wg.Wait()
}

// TestUsingTheContextAllocatesNothing: only who waits for a context's end pays
// for it.
func TestUsingTheContextAllocatesNothing(t *testing.T) {
	r := quiet(t, forbear.Policy{PerAttempt: time.Minute})
	op := func(ctx context.Context) error {
		_, _ = ctx.Deadline()
		_ = ctx.Value("key")
		return ctx.Err()
	}
	if n := testing.AllocsPerRun(200, func() { _ = r.Do(context.Background(), op) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
