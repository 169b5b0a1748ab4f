package forbear_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
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
