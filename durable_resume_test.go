package forbear_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// batchRetryer returns a Retryer of kind Batch without a floor in its budget
// and with the mean of every backoff.
func batchRetryer(t *testing.T, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	p.Kind, p.Strict = forbear.Batch, true
	opts = append(opts, forbear.WithoutLog(), forbear.WithRand(func() float64 { return 0.5 }))
	return forbear.Must(forbear.New("ledger", p, opts...))
}

// begun returns a call whose first attempt is under way.
func begun(t *testing.T, r *forbear.Retryer) *edge.DurableCall {
	t.Helper()
	c := edge.Durable(t.Context(), r, edge.Progress{})
	if d := c.Ask(t.Context(), time.Now()); !d.Retry || d.Wait != 0 {
		t.Fatalf("the first attempt was refused: %s", d.Reason)
	}
	return c
}

func fails(context.Context) error { return forbear.Retryable(errFlaky, forbear.Hint{}) }
func works(context.Context) error { return nil }

// A retry that the budget refuses is put off, told once, and granted when the
// dependency has earned it; its backoff counts from the failure.
func TestResumeAfterTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &durableEvents{}
		r, ctx := batchRetryer(t, forbear.Policy{}, forbear.WithObserver(o.observer())), t.Context()
		c := begun(t, r)
		d, _ := c.Try(ctx, fails)
		c.Postpone(ctx, d, time.Now())
		for range 5 {
			time.Sleep(20 * time.Millisecond)
			if d = c.Ask(ctx, time.Now()); d.Retry || d.Reason != reason.Budget || c.State.Attempt != 1 {
				t.Fatalf("got %s, attempt %d; want it put off", d.Reason, c.State.Attempt)
			}
		}
		if err := r.Do(ctx, works); err != nil {
			t.Fatal(err)
		}
		if d = c.Ask(ctx, time.Now()); !d.Retry || !d.Paced || d.Wait != 400*time.Millisecond {
			t.Fatalf("got %s, wait %v; want the 500 ms of the backoff less the 100 ms that are over", d.Reason, d.Wait)
		}
		time.Sleep(d.Wait)
		if d = c.Ask(ctx, time.Now()); !d.Retry || d.Wait != 0 {
			t.Fatalf("got %s after the wait", d.Reason)
		}
		if d, _ = c.Try(ctx, works); d.Reason != reason.Success {
			t.Fatalf("got %s, want success", d.Reason)
		}
		want := []string{
			`attempt 1 of 4 "retryable_error"`, "stopped budget_exhausted after 0",
			`attempt 1 of 4 ""`, "done 1 after ", "retry 2 ",
			`attempt 2 of 4 ""`, "done 2 after retryable_error",
		}
		if !slices.Equal(o.log, want) {
			t.Errorf("told %q\nwant %q", o.log, want)
		}
	})
}

// A retry that was granted and finds the breaker open goes back to the budget,
// and is a probe later.
func TestResumeBehindAnOpenBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ctx := batchRetryer(t, forbear.Policy{}), t.Context()
		for range 10 { // two retries
			if err := r.Do(ctx, works); err != nil {
				t.Fatal(err)
			}
		}
		c := begun(t, r)
		d, _ := c.Try(ctx, fails)
		if !d.Retry || r.Level(time.Now()).Used != 1 {
			t.Fatalf("got %s, %+v", d.Reason, r.Level(time.Now()))
		}
		for range 60 {
			_ = r.Do(ctx, func(context.Context) error { return forbear.Retryable(errFlaky, forbear.Hint{Stop: true}) })
		}
		if s := r.Breaker().State(); s != breaker.Open {
			t.Fatal(s)
		}
		time.Sleep(d.Wait)
		if d = c.Ask(ctx, time.Now()); d.Retry || d.Reason != reason.BreakerOpen || c.State.Attempt != 1 || r.Level(time.Now()).Used != 0 {
			t.Fatalf("got %s, attempt %d, %+v; want it put off and the retry given back", d.Reason, c.State.Attempt, r.Level(time.Now()))
		}
		time.Sleep(r.Breaker().Wait(time.Now()))
		if d = c.Ask(ctx, time.Now()); !d.Retry || d.Wait != 0 || c.Timeout(time.Now()) != 2500*time.Millisecond {
			t.Fatalf("got %s, wait %v, %v for the attempt; want a probe with half of the time", d.Reason, d.Wait, c.Timeout(time.Now()))
		}
		if d, _ = c.Try(ctx, works); d.Reason != reason.Success {
			t.Errorf("got %s, want success", d.Reason)
		}
	})
}

// A retry that is refused after it was let in gives the leave back: the other
// probes are not lost.
func TestResumeKeepsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ctx := batchRetryer(t, forbear.Policy{Breaker: breaker.Policy{Probes: 1}}), t.Context()
		c := begun(t, r)
		d, _ := c.Try(ctx, fails)
		r.Breaker().Force(breaker.Open, "ada", time.Now())
		r.Breaker().Release()
		time.Sleep(10 * time.Second)
		for range 3 {
			if d = c.Ask(ctx, time.Now()); d.Reason != reason.Budget {
				t.Fatalf("got %s, want the budget to refuse", d.Reason)
			}
		}
		if err := r.Do(ctx, works); err != nil || r.Breaker().State() != breaker.Closed {
			t.Errorf("%v, %v; want a first attempt as the probe", err, r.Breaker().State())
		}
	})
}

// What waits ends with its total, with its caller, or when it is given up.
func TestResumeEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(c *edge.DurableCall) forbear.Reason
		want forbear.Reason
	}{
		"total": {func(c *edge.DurableCall) forbear.Reason {
			time.Sleep(30 * time.Second)
			return c.Ask(context.Background(), time.Now()).Reason
		}, reason.Deadline},
		"caller": {func(c *edge.DurableCall) forbear.Reason {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return c.Ask(ctx, time.Now()).Reason
		}, reason.Canceled},
		"given up": {func(c *edge.DurableCall) forbear.Reason {
			e := c.GiveUp(context.Background(), reason.Canceled, time.Now())
			if e.Attempts != 1 || !errors.Is(e, errFlaky) {
				t.Errorf("%+v", e)
			}
			return e.Reason
		}, reason.Canceled},
	} {
		for _, granted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				o := &durableEvents{}
				p := forbear.Policy{}
				r := batchRetryer(t, p, forbear.WithObserver(o.observer()))
				for range 5 {
					if granted {
						_ = r.Do(t.Context(), works)
					}
				}
				c := begun(t, r)
				d, _ := c.Try(t.Context(), fails)
				if d.Retry != granted {
					t.Fatalf("got %s", d.Reason)
				}
				o.log = nil
				if got := test.end(c); got != test.want {
					t.Errorf("%s: got %s, want %s", name, got, test.want)
				}
				if want := []string{fmt.Sprintf("stopped %s after 1", test.want)}; !slices.Equal(o.log, want) {
					t.Errorf("%s: told %q, want %q", name, o.log, want)
				}
				if used := r.Level(time.Now()).Used; used != 0 {
					t.Errorf("%s: the retry that was not made still costs %v", name, used)
				}
			})
		}
	}
}

// Who waits holds no place among the calls under way.
func TestResumeAndTheBulkhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ctx := batchRetryer(t, forbear.Policy{MaxConcurrent: 1}), t.Context()
		for range 5 {
			_ = r.Do(ctx, works)
		}
		c := begun(t, r)
		d, _ := c.Try(ctx, fails)
		if n := r.Bulkhead().Available(); n != 1 {
			t.Fatalf("%d places are free in the backoff", n)
		}
		time.Sleep(d.Wait)
		if !r.Bulkhead().Enter() {
			t.Fatal("no place")
		}
		if d = c.Ask(ctx, time.Now()); d.Reason != reason.BulkheadFull {
			t.Fatalf("got %s, want it put off", d.Reason)
		}
		r.Bulkhead().Leave()
		if d = c.Ask(ctx, time.Now()); !d.Retry || d.Wait != 0 || r.Bulkhead().Available() != 0 {
			t.Fatalf("got %s, wait %v, %d places", d.Reason, d.Wait, r.Bulkhead().Available())
		}
		if c.Try(ctx, works); r.Bulkhead().Available() != 1 {
			t.Error("the place was not given back")
		}
	})
}
