package forbear_test

import (
	"context"
	"crypto/x509"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// all keeps every event that recorder does not.
type all struct {
	recorder
	ended    []forbear.AttemptEnded
	good     []forbear.Succeeded
	stops    []forbear.Stopped
	dead     []forbear.DeadLettered
	attached []*forbear.Retryer
}

func (a *all) AttemptEnded(_ context.Context, e forbear.AttemptEnded) { a.ended = append(a.ended, e) }
func (a *all) Succeeded(_ context.Context, e forbear.Succeeded)       { a.good = append(a.good, e) }
func (a *all) Stopped(_ context.Context, e forbear.Stopped)           { a.stops = append(a.stops, e) }

func (a *all) DeadLettered(_ context.Context, e forbear.DeadLettered) { a.dead = append(a.dead, e) }
func (a *all) Attached(r *forbear.Retryer)                            { a.attached = append(a.attached, r) }

func TestSuccessTellsAttemptsLatencyAndWhatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen all
		r := quiet(t, forbear.Policy{}, forbear.WithObserver(seen.observer()), forbear.WithRand(half))
		calls := 0
		err := r.Do(t.Context(), func(context.Context) error {
			calls++
			time.Sleep(time.Duration(calls) * 10 * time.Millisecond)
			if calls < 3 {
				return forbear.Retryable(errFlaky, forbear.Hint{})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range seen.ended {
			if want := time.Duration(i+1) * 10 * time.Millisecond; e.Latency != want {
				t.Errorf("attempt %d took %v, want %v: waits are not part of it", i+1, e.Latency, want)
			}
		}
		// 500 ms and 1 s of backoff, and 60 ms in the attempts.
		if len(seen.good) != 1 || seen.good[0].Attempt != 3 || seen.good[0].FailedBefore != "retryable_error" ||
			seen.good[0].Elapsed != 1560*time.Millisecond {
			t.Errorf("got %+v", seen.good)
		}
		if len(seen.attached) != 1 || seen.attached[0] != r {
			t.Errorf("attached: %v", seen.attached)
		}
	})
}

func TestStoppedCountsAttemptsMade(t *testing.T) {
	for name, tt := range map[string]struct {
		left   time.Duration
		policy forbear.Policy
		op     func(context.Context) error
		made   int
		why    forbear.Reason
	}{
		"exhausted":      {time.Hour, forbear.Policy{MaxRetries: 2}, failing, 3, reason.Exhausted},
		"terminal":       {time.Hour, forbear.Policy{}, func(context.Context) error { return forbear.Terminal(errFlaky) }, 1, reason.Terminal},
		"too late":       {-time.Second, forbear.Policy{}, failing, 0, reason.Deadline},
		"no time at all": {time.Second, forbear.Policy{MinAttempt: 2 * time.Second}, failing, 0, reason.Deadline},
	} {
		bubble(t, name, func(t *testing.T) {
			var seen all
			ctx, cancel := context.WithTimeout(t.Context(), tt.left)
			defer cancel()
			_ = quiet(t, tt.policy, forbear.WithObserver(seen.observer())).Do(ctx, tt.op)
			if len(seen.stops) != 1 || seen.stops[0].Attempts != tt.made || seen.stops[0].Reason != tt.why {
				t.Errorf("got %+v, want %d attempts and %v", seen.stops, tt.made, tt.why)
			}
		})
	}
}

// spent is a budget that grants nothing.
type spent struct{}

func (spent) Request(time.Time)                 {}
func (spent) Spend(time.Time, budget.Cost) bool { return false }
func (spent) Refund(time.Time, budget.Cost)     {}
func (spent) Level(time.Time) (l budget.Level)  { return l }

// paced writes down which retries are beyond the budget's share.
type paced []bool

func (p *paced) RetryScheduled(_ context.Context, e forbear.RetryScheduled) { *p = append(*p, e.Paced) }

// A retry of durable work beyond the budget's share says so, in Do and for durable
// calls; one within the share does not.
func TestPacedRetriesAreReported(t *testing.T) {
	bubble(t, "within the share", func(t *testing.T) {
		var seen paced
		r := quiet(t, forbear.Policy{Kind: forbear.Batch}, forbear.WithBudget(unlimited()), forbear.WithObserver(seen.observer()))
		op, _ := failTimes(1, forbear.Retryable(errFlaky, forbear.Hint{}))
		if err := r.Do(t.Context(), op); err != nil || !slices.Equal(seen, paced{false}) {
			t.Errorf("%v, paced %v; want one retry that is not", err, seen)
		}
	})
	bubble(t, "beyond it", func(t *testing.T) {
		var seen paced
		r := quiet(t, forbear.Policy{Kind: forbear.Batch}, forbear.WithBudget(spent{}), forbear.WithObserver(seen.observer()))
		if err := r.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		op, _ := failTimes(1, forbear.Retryable(errFlaky, forbear.Hint{}))
		if err := r.Do(t.Context(), op); err != nil || !slices.Equal(seen, paced{true}) {
			t.Errorf("%v, paced %v; want one retry that a success has earned", err, seen)
		}
		c, now := edge.Durable(t.Context(), r, edge.Progress{}), time.Now()
		c.Ask(t.Context(), now)
		d := c.Fail(t.Context(), unavailable, 0, now)
		if !slices.Equal(seen, paced{true, true}) {
			t.Errorf("paced %v after %+v, want a second one", seen, d)
		}
	})
}

func TestCertificateAndDeadLetterEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen all
		r := quiet(t, forbear.Policy{Kind: forbear.Event}, forbear.WithObserver(seen.observer()), forbear.WithDeadLetter(&sink{}))
		_ = r.Do(t.Context(), func(context.Context) error { return x509.UnknownAuthorityError{} })
		if len(seen.stops) != 1 || seen.stops[0].Reason != reason.Certificate || seen.stops[0].Failure.Type != errtype.Certificate {
			t.Errorf("certificates: %+v", seen.stops)
		}
		if len(seen.dead) != 1 || seen.dead[0].Queue != "payments" || seen.dead[0].Reason != reason.Certificate {
			t.Errorf("dead letters: %+v", seen.dead)
		}
	})
}

func TestMetricsDoNotSilenceTheLog(t *testing.T) {
	lines := logged(t, func(t *testing.T) {
		r, err := forbear.New("payments", forbear.Policy{MaxRetries: 1}, forbear.WithObserver(&forbear.Observer{KeepsLog: true, AttemptStarted: func(context.Context, forbear.Info) {}}))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Do(t.Context(), failing)
	})
	if len(lines) != 2 {
		t.Errorf("got %q, want a retry and the end", lines)
	}
}

func TestCorrelationComesFromTheContextThenTheTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		r := quiet(t, forbear.Policy{MaxRetries: 1}, forbear.WithObserver(seen.observer()),
			forbear.WithCorrelation(func(context.Context) string { return "trace-1" }))
		_ = r.Do(t.Context(), failing)
		if got := seen.infos[0].CorrelationID; got != "trace-1" {
			t.Errorf("got %q, want the trace's", got)
		}
		_ = r.Do(forbear.WithCorrelationID(t.Context(), "c-1"), failing)
		if got := seen.infos[len(seen.infos)-1].CorrelationID; got != "c-1" {
			t.Errorf("got %q, want the context's", got)
		}
	})
}

func TestReasonsAreExhaustedOrSuppressedNeverBoth(t *testing.T) {
	if !reason.Deadline.Exhausted() || reason.Budget.Exhausted() || !reason.Budget.Suppressed() {
		t.Error("a spent budget is a refusal, a spent deadline is not")
	}
	for r := range reason.WeakCredential + 1 {
		if r.Exhausted() && r.Suppressed() {
			t.Errorf("%v is both", r)
		}
	}
}

func (o *all) observer() *forbear.Observer {
	return &forbear.Observer{AttemptEnded: o.AttemptEnded, Succeeded: o.Succeeded, Stopped: o.Stopped, AttemptStarted: o.AttemptStarted, RetryScheduled: o.RetryScheduled, DeadLettered: o.DeadLettered, Attached: o.Attached}
}

func (o *paced) observer() *forbear.Observer {
	return &forbear.Observer{RetryScheduled: o.RetryScheduled}
}
