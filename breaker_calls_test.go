package forbear_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/layer"
)

// TestBreakerOpensInTheMiddle: the breaker wraps the retries and ends running
// sequences; afterwards no attempt is made at all.
func TestBreakerOpensInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		for range 18 {
			r.Breaker().Record(breaker.Permit{}, breaker.Failed, time.Now())
		}
		attempts := 0
		op := func(context.Context) error {
			attempts++
			return forbear.Retryable(errFlaky, forbear.Hint{})
		}
		err := r.Do(t.Context(), op)
		if !errors.Is(err, forbear.ErrBreakerOpen) || !errors.Is(err, errFlaky) || attempts != 2 {
			t.Fatalf("%d attempts, %v; want 2, ErrBreakerOpen and the operation's error", attempts, err)
		}
		if err = r.Do(t.Context(), op); !errors.Is(err, forbear.ErrBreakerOpen) || attempts != 2 {
			t.Fatalf("open: %d attempts, %v; want none and ErrBreakerOpen", attempts-2, err)
		}
		if e, _ := errors.AsType[*forbear.Error](err); e.Attempts != 0 || e.Retryable() {
			t.Errorf("a rejection has %d attempts, retryable %v", e.Attempts, e.Retryable())
		}
		time.Sleep(5 * time.Second)
		good := func(context.Context) error { attempts++; return nil }
		for range 5 {
			if err := r.Do(t.Context(), good); err != nil {
				t.Fatal(err)
			}
		}
		if s := r.Breaker().State(); s != breaker.Closed {
			t.Errorf("after five good probes: %v", s)
		}
	})
}

// TestRecoveryWithinOneOpenPeriod: a dependency that is well again is used again
// no later than one open period after.
func TestRecoveryWithinOneOpenPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{})
		down := true
		op := func(context.Context) error {
			if down {
				return forbear.Retryable(errFlaky, forbear.Hint{NoBackoff: true})
			}
			return nil
		}
		for range 100 {
			_ = r.Do(t.Context(), op)
			time.Sleep(100 * time.Millisecond)
		}
		if r.Breaker().State() == breaker.Closed {
			t.Fatal("the breaker is closed during the outage")
		}
		down = false
		healed := time.Now()
		for r.Breaker().State() != breaker.Closed {
			_ = r.Do(t.Context(), op)
			time.Sleep(100 * time.Millisecond)
			if time.Since(healed) > time.Minute {
				t.Fatal("no recovery within a minute")
			}
		}
		if took := time.Since(healed); took > 30*time.Second+time.Second {
			t.Errorf("recovery took %v, want at most one open period of 30s", took)
		}
	})
}

func TestOnlyTheOwnerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for service, want := range map[string]int{"checkout": 4, "gateway": 1} {
			r := quiet(t, forbear.Policy{Owner: "checkout"}, forbear.WithService(service))
			n := 0
			err := r.Do(t.Context(), func(context.Context) error { n++; return forbear.Retryable(errFlaky, forbear.Hint{}) })
			e, _ := errors.AsType[*forbear.Error](err)
			if n != want || e.Retryable() != (service != "checkout") {
				t.Errorf("%s: %d attempts, %v, retryable above: %v", service, n, err, e.Retryable())
			}
		}
	})
}

// TestOwnerWithoutService: an owner that nothing is compared to has no effect, which New
// says instead of retrying; a Set has a name.
func TestOwnerWithoutService(t *testing.T) {
	_, err := forbear.New("payments", forbear.Policy{Owner: "checkout"})
	if err == nil || !strings.Contains(err.Error(), `owner "checkout"`) || !strings.Contains(err.Error(), "WithService") {
		t.Errorf("New: %v", err)
	}
	if _, err := forbear.New("payments", forbear.Policy{Owner: "checkout"}, forbear.WithService("")); err != nil {
		t.Errorf("a service that is not known: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		for service, want := range map[string]int{"checkout": 4, "gateway": 1} {
			set, err := forbear.NewSet(service, forbear.Policy{Owner: "checkout"}, forbear.WithoutLog())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			_ = set.Retryer("payments").Do(t.Context(), func(context.Context) error { n++; return forbear.Retryable(errFlaky, forbear.Hint{}) })
			if n != want {
				t.Errorf("a set of %s: %d attempts, want %d", service, n, want)
			}
		}
	})
}

// TestLayerBelowIsNoticed: an SDK that repeats a request within one attempt.
func TestLayerBelowIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []forbear.LayeredRetry
		r, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(&forbear.Observer{LayeredRetry: func(_ context.Context, e forbear.LayeredRetry) { seen = append(seen, e) }}))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Do(t.Context(), func(ctx context.Context) error {
			layer.NoteSend(ctx, 1)
			layer.NoteSend(ctx, 2) // another request is no repetition
			layer.NoteSend(ctx, 1) // this one is
			return forbear.Retryable(errFlaky, forbear.Hint{})
		})
		if len(seen) != 1 || seen[0].Sends != 2 || edge.LayeredSends(r) != 3 {
			t.Errorf("reported %+v, counted %d; want one report of 2 sends, and 3 counted", seen, edge.LayeredSends(r))
		}
	})
}

// A call that succeeds after a wait counts as good when it does, not when it
// began.
func TestLateSuccessCountsWhenItHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{
			Breaker: breaker.Policy{WindowTime: 10 * time.Second},
		}, forbear.WithBudget(unlimited()))
		var calls sync.WaitGroup
		for range 19 {
			if err := r.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			calls.Go(func() {
				attempts := 0
				if err := r.Do(t.Context(), func(context.Context) error {
					if attempts++; attempts == 1 {
						return forbear.Retryable(errFlaky, forbear.Hint{Floor: 20 * time.Second})
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		for range 20 {
			_ = r.Do(t.Context(), func(context.Context) error { return forbear.Retryable(errFlaky, forbear.Hint{Stop: true}) })
		}
		if s := r.Breaker().State(); s != breaker.Closed {
			t.Errorf("%v after 20 failures beside 19 successes", s)
		}
	})
}

// TestBreakerOpensDuringTheWait: what was granted before the wait is asked for
// again after it.
func TestBreakerOpensDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithRand(func() float64 { return 0.5 }))
		attempts := 0
		time.AfterFunc(100*time.Millisecond, func() { r.Breaker().Force(breaker.Open, "ada", time.Now()) })
		err := r.Do(t.Context(), func(context.Context) error {
			attempts++
			return forbear.Retryable(errFlaky, forbear.Hint{})
		})
		if !errors.Is(err, forbear.ErrBreakerOpen) || !errors.Is(err, errFlaky) || attempts != 1 {
			t.Errorf("%d attempts, %v; want 1, ErrBreakerOpen and the operation's error", attempts, err)
		}
		if used := r.Level(time.Now()).Used; used != 0 {
			t.Errorf("the retry that was not made still costs %v", used)
		}
	})
}

func TestBulkhead(t *testing.T) {
	r := quiet(t, forbear.Policy{MaxConcurrent: 2})
	entered, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_ = r.Do(t.Context(), func(context.Context) error { entered <- struct{}{}; <-release; return nil })
		})
		<-entered
	}
	err := r.Do(t.Context(), func(context.Context) error { t.Error("a third call was let in"); return nil })
	if !errors.Is(err, forbear.ErrBulkheadFull) {
		t.Errorf("third call: %v, want ErrBulkheadFull", err)
	}
	if rate := r.Breaker().FailureRate(time.Now()); rate != 1 {
		t.Errorf("the rejection is no signal to the breaker: failure rate %v", rate)
	}
	close(release)
	wg.Wait()
	func() {
		defer func() { _ = recover() }()
		_ = r.Do(t.Context(), func(context.Context) error { panic("boom") })
	}()
	if n := r.Bulkhead().Available(); n != 2 {
		t.Errorf("%d places free after all calls ended, one by a panic; want 2", n)
	}
	if n := breaker.BulkheadSize(100, 250*time.Millisecond, 2); n != 50 {
		t.Errorf("size for 100/s at 250ms: %d, want 50", n)
	}
}
