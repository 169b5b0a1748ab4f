package forbear_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

var noBreaker = breaker.Policy{Disabled: true}

// TestBudgetErrorHasTheFigures: who reads that the budget is spent reads how large
// it was, and which knob makes it larger.
func TestBudgetErrorHasTheFigures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy forbear.Policy
		budget budget.Budget
		good   int // calls before
		want   string
		level  budget.Level
	}{
		{"the floor", forbear.Policy{}, nil, 0, "3 of 3 retries of this 30s window used; a quiet client's floor is budget.min_retries (R-7; forbear explain budget_exhausted)", budget.Level{Used: 3, Allowed: 3}},
		{"the ratio", forbear.Policy{}, nil, 50, "10 of 10 retries of this 30s window used; the share of all calls is budget.ratio (R-7; forbear explain budget_exhausted)", budget.Level{Used: 10, Allowed: 10}},
		{"no floor", forbear.Policy{Strict: true}, nil, 0, "0 of 0 retries of this 30s window used; the share of all calls is budget.ratio (R-7; forbear explain budget_exhausted)", budget.Level{}},
		{
			"another window",
			forbear.Policy{Budget: budget.Policy{Window: time.Minute, MinRetries: 1}},
			nil, 0,
			"1 of 1 retries of this 1m0s window used; a quiet client's floor is budget.min_retries (R-7; forbear explain budget_exhausted)",
			budget.Level{Used: 1, Allowed: 1},
		},
		{
			"a shared one",
			forbear.Policy{},
			budget.NewRatio(budget.Policy{Ratio: 0.5, Window: time.Minute, MinRetries: 2}), 0,
			"2 of 2 retries of this 1m0s window used; a quiet client's floor is budget.min_retries (R-7; forbear explain budget_exhausted)",
			budget.Level{Used: 2, Allowed: 2},
		},
		{"a bucket", forbear.Policy{}, budget.NewTokenBucket(2, 0), 0, "2 of 2 used (R-7; forbear explain budget_exhausted)", budget.Level{Used: 2, Allowed: 2}},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			opts := []forbear.Option{forbear.WithRand(func() float64 { return 0 })}
			if tt.budget != nil {
				opts = append(opts, forbear.WithBudget(tt.budget))
			}
			tt.policy.Breaker, tt.policy.MaxRetries = noBreaker, 5
			r := quiet(t, tt.policy, opts...)
			for range tt.good {
				_ = r.Do(t.Context(), func(context.Context) error { return nil })
			}
			var err error
			for range 5 {
				if err = r.Do(t.Context(), failing); errors.Is(err, forbear.ErrBudgetExhausted) {
					break
				}
			}
			want := "payments: retry budget exhausted: " + tt.want + " after "
			if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Level != tt.level || !strings.HasPrefix(e.Error(), want) || !strings.HasSuffix(e.Error(), ": flaky") {
				t.Errorf("got  %v\nwant %s...", err, want)
			}
		})
	}
}

// Durable work that its caller gives up for want of a budget says the same.
func TestGivenUpWorkHasTheFigures(t *testing.T) {
	r, now := webhooks(t, forbear.WithoutLog()), time.Now()
	c := edge.Durable(t.Context(), r, edge.Progress{})
	c.Ask(t.Context(), now)
	c.Fail(t.Context(), unavailable, 0, now)
	e := edge.Durable(t.Context(), r, edge.Progress{}).GiveUp(t.Context(), reason.Budget, now)
	if want := (budget.Level{Used: 1, Allowed: 1}); e.Level != want || !strings.Contains(e.Error(), "1 of 1 retries") {
		t.Errorf("got %v, %v; want %v", e, e.Level, want)
	}
}

// TestBreakerErrorSaysUntilWhen: and whether it is worth waiting (R-7; forbear explain breaker_open).
func TestBreakerErrorSaysUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{Breaker: breaker.Policy{Probes: 1}}, forbear.WithRand(half))
		b, start := r.Breaker(), time.Now()
		for range 20 {
			b.Record(breaker.Permit{}, breaker.Failed, start)
		}
		check := func(want string, until time.Time) {
			t.Helper()
			err := r.Do(t.Context(), failing)
			e, ok := errors.AsType[*forbear.Error](err)
			if !ok || !errors.Is(err, forbear.ErrBreakerOpen) || err.Error() != want || !e.Until.Equal(until) {
				t.Errorf("got  %v until %v\nwant %s until %v", err, e.Until, want, until)
			}
		}
		until := start.Add(5 * time.Second)
		open := "payments: circuit breaker open until " + until.Local().Format("15:04:05Z07:00") + " (R-7; forbear explain breaker_open)"
		check(open, until)
		time.Sleep(3 * time.Second)
		check(open, until)

		b.Force(breaker.Open, "jane", time.Now())
		check("payments: circuit breaker open: held open by an operator (R-7; forbear explain breaker_open)", time.Time{})
		b.Release()

		time.Sleep(3 * time.Second)
		if _, ok := b.Allow(time.Now()); !ok {
			t.Fatal("no probe after the wait")
		}
		check("payments: circuit breaker open: half-open, and all its probes are under way (R-7; forbear explain breaker_open)", time.Time{})
	})
}

// TestBreakerErrorInTheMiddle: the breaker that opens under a call ends it with its
// figures and the last error.
func TestBreakerErrorInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithRand(half), forbear.WithBudget(unlimited()))
		err := r.Do(t.Context(), func(context.Context) error {
			for range 20 {
				r.Breaker().Record(breaker.Permit{}, breaker.Failed, time.Now())
			}
			return forbear.Retryable(errFlaky, forbear.Hint{})
		})
		want := "payments: circuit breaker open until " + time.Now().Add(5*time.Second).Local().Format("15:04:05Z07:00") +
			" (R-7; forbear explain breaker_open) after 1 attempt in 0s: flaky"
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// refusal is a call whose retry or first attempt is withheld, which an overload has
// by the thousand.
func refusal(t testing.TB, open bool) func() {
	r, ctx := quiet(t, forbear.Policy{}), requestContext(t)
	if open {
		for range 20 {
			r.Breaker().Record(breaker.Permit{}, breaker.Failed, time.Now().Add(time.Hour))
		}
	} else {
		none := budget.NewRatio(budget.Policy{Window: budget.DefaultWindow})
		r = quiet(t, forbear.Policy{Breaker: noBreaker}, forbear.WithBudget(none))
	}
	failure := forbear.Retryable(errFlaky, forbear.Hint{})
	op := func(context.Context) error { return failure }
	return func() { _ = r.Do(ctx, op) }
}

// A refusal allocates the error and nothing for its text.
func TestRefusalsAllocateTheErrorAlone(t *testing.T) {
	for name, open := range map[string]bool{"breaker": true, "budget": false} {
		if n := testing.AllocsPerRun(200, refusal(t, open)); n != 1 {
			t.Errorf("%s: %v allocations, want 1", name, n)
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	for name, open := range map[string]bool{"breaker": true, "budget": false} {
		b.Run(name, func(b *testing.B) {
			call := refusal(b, open)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// A network failure that only the operation can vouch for is named, and so is the word
// that vouches for it; an error that nothing knows is not guessed at.
func TestUnknownErrorsSayWhatWouldHelp(t *testing.T) {
	r := forbear.Must(forbear.New("ledger", forbear.Policy{}, forbear.WithoutLog()))
	for _, tc := range []struct {
		err         error
		label, want string
	}{
		{syscall.ECONNRESET, "connection_reset", "ledger: not retryable: connection_reset may come after the work was done; if it is safe to repeat, declare it idempotent (forbear.Idempotent) (R-4)"},
		{errors.New("odd"), "unknown", "ledger: not retryable: unknown error; if it may be retried, mark it with forbear.Retryable or classify it (R-4)"},
	} {
		err := r.Do(t.Context(), func(context.Context) error { return tc.err })
		e, ok := errors.AsType[*forbear.Error](err)
		if !ok || e.Reason != reason.Unknown || e.Type != tc.label || e.Attempts != 1 || !strings.HasPrefix(e.Error(), tc.want) {
			t.Errorf("got %v (%s), want %s", err, e.Type, tc.want)
		}
	}
}

// TestErrorSaysWhetherItWasSent: who gets the error knows whether the work may have been
// done, whatever ended the call.
func TestErrorSaysWhetherItWasSent(t *testing.T) {
	refused, reset := error(syscall.ECONNREFUSED), error(syscall.ECONNRESET)
	for _, tt := range []struct {
		name   string
		fails  []error
		unsent bool
	}{
		{"never connected", []error{refused, refused}, true},
		{"broke off", []error{reset, reset}, false},
		{"broke off, then not connected", []error{reset, refused}, false},
		{"not connected, then broke off", []error{refused, reset}, false},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			r := quiet(t, forbear.Policy{MaxRetries: 1, Breaker: noBreaker, Idempotent: true})
			n := 0
			err := r.Do(t.Context(), func(context.Context) error { n++; return tt.fails[n-1] })
			if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Attempts != 2 || e.Unsent() != tt.unsent {
				t.Errorf("%v: unsent %v, want %v", err, ok && e.Unsent(), tt.unsent)
			}
		})
	}
	r := quiet(t, forbear.Policy{})
	r.Breaker().Force(breaker.Open, "jane", time.Now())
	err := r.Do(t.Context(), failing)
	if e, ok := errors.AsType[*forbear.Error](err); !ok || !e.Unsent() {
		t.Errorf("%v is not unsent", err)
	}
	if (&forbear.Error{Attempts: 1}).Unsent() {
		t.Error("an error of which nothing is known is unsent")
	}
}

// TestRefusalIsLoggedWithItsFigures: as the error has them.
func TestRefusalIsLoggedWithItsFigures(t *testing.T) {
	var log bytes.Buffer
	observer := forbear.LogObserver(slog.New(slog.NewTextHandler(&log, nil)), nil)
	r := quiet(t, forbear.Policy{Strict: true, Breaker: noBreaker}, forbear.WithObserver(observer))
	_ = r.Do(t.Context(), failing)
	r = quiet(t, forbear.Policy{}, forbear.WithObserver(observer))
	r.Breaker().Force(breaker.Open, "jane", time.Now())
	_ = r.Do(t.Context(), failing)
	for _, want := range []string{
		`reason=budget_exhausted why="retry budget exhausted: 0 of 0 retries of this 30s window used; the share of all calls is budget.ratio"`,
		`reason=breaker_open why="circuit breaker open: held open by an operator"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, &log)
		}
	}
}
