package forbear_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
)

// TestPanicsDoNotWedgeTheBreaker: an operation that panics while it tries out a
// dependency that was down gives its permit back, or nobody could ever try
// again.
func TestPanicsDoNotWedgeTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{Disabled: true, MaxConcurrent: 1, Breaker: breaker.Policy{Probes: 2}})
		for range 20 {
			_ = r.Do(t.Context(), failing)
		}
		if got := r.Breaker().State(); got != breaker.Open {
			t.Fatalf("%v after twenty failures, want open", got)
		}
		time.Sleep(time.Minute)
		for range 3 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic did not arrive")
					}
				}()
				_ = r.Do(t.Context(), func(context.Context) error { panic("probe") })
			}()
		}
		for range 2 {
			if err := r.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatalf("a probe after the panics: %v (breaker open: %v)", err, errors.Is(err, forbear.ErrBreakerOpen))
			}
		}
		if got := r.Breaker().State(); got != breaker.Closed {
			t.Errorf("%v after two good probes, want closed", got)
		}
	})
}

// TestGoexitEndsADurableCall: an operation that ends its goroutine has failed for good, and
// gives back its place and its permit.
func TestGoexitEndsADurableCall(t *testing.T) {
	r := quiet(t, forbear.Policy{Kind: forbear.Batch, MaxConcurrent: 1}, forbear.WithCallerDeadLetter())
	c := edge.Durable(t.Context(), r, edge.Progress{})
	c.Ask(t.Context(), time.Now())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Try(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		t.Error("the goroutine goes on")
	}()
	<-ended
	if n := r.Bulkhead().Available(); n != 1 || c.Attempts != 1 {
		t.Errorf("%d places are free after %d attempts, want 1 and 1", n, c.Attempts)
	}
	if d := edge.Durable(t.Context(), r, edge.Progress{}).Ask(t.Context(), time.Now()); !d.Retry {
		t.Errorf("the next call: %v", d.Reason)
	}
}
