package forbear_test

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
)

// failing is an operation that always fails, retryably.
func failing(context.Context) error { return forbear.Retryable(errFlaky, forbear.Hint{}) }

// failTimes returns an operation that fails n times, and the count of its runs.
func failTimes(n int, err error) (op func(context.Context) error, runs *int) {
	runs = new(int)
	return func(context.Context) error {
		if *runs++; *runs <= n {
			return err
		}
		return nil
	}, runs
}

// bubble runs f in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestDo(t *testing.T) {
	marked := forbear.Retryable(errFlaky, forbear.Hint{})
	for _, tt := range []struct {
		name     string
		policy   forbear.Policy
		fail     int
		err      error
		attempts int
		want     error
	}{
		{"succeeds at once", forbear.Policy{}, 0, nil, 1, nil},
		{"succeeds at the second", forbear.Policy{}, 1, marked, 2, nil},
		{"succeeds at the last", forbear.Policy{}, 3, marked, 4, nil},
		{"exhausted", forbear.Policy{}, 9, marked, 4, forbear.ErrExhausted},
		{"one retry", forbear.Policy{MaxRetries: 1}, 9, marked, 2, forbear.ErrExhausted},
		{"five retries", forbear.Policy{MaxRetries: 5, Backoff: forbear.Backoff{Base: time.Millisecond}}, 9, marked, 6, forbear.ErrExhausted},
		{"disabled", forbear.Policy{Disabled: true}, 9, marked, 1, forbear.ErrExhausted},
		{"terminal", forbear.Policy{}, 9, forbear.Terminal(errFlaky), 1, forbear.ErrTerminal},
		{"unmarked", forbear.Policy{}, 9, errFlaky, 1, forbear.ErrTerminal},
		{"certificate in a mark", forbear.Policy{}, 9, forbear.Retryable(errors.Join(errFlaky, x509.HostnameError{Certificate: &x509.Certificate{}}), forbear.Hint{}), 1, forbear.ErrCertificate},
		{"mark in a terminal", forbear.Policy{}, 9, forbear.Terminal(marked), 1, forbear.ErrTerminal},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			r := quiet(t, tt.policy, forbear.WithBudget(unlimited()))
			op, runs := failTimes(tt.fail, tt.err)
			err := r.Do(t.Context(), op)
			if *runs != tt.attempts {
				t.Errorf("%d attempts, want %d", *runs, tt.attempts)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.want == nil {
				return
			}
			e, ok := errors.AsType[*forbear.Error](err)
			if !ok || e.Attempts != tt.attempts || e.Dependency != "payments" || !errors.Is(err, errFlaky) {
				t.Errorf("got %#v", err)
			}
		})
	}
}

func TestDoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, runs := quiet(t, forbear.Policy{}), 0
		got, err := forbear.DoValue(t.Context(), r, func(context.Context) (string, error) {
			if runs++; runs < 3 {
				return "partial", forbear.Retryable(errFlaky, forbear.Hint{})
			}
			return "whole", nil
		})
		if got != "whole" || err != nil || runs != 3 {
			t.Errorf("got %q, %v after %d attempts", got, err, runs)
		}
	})
}

func TestNilFunc(t *testing.T) {
	r := quiet(t, forbear.Policy{})
	if err := r.Do(t.Context(), nil); err == nil {
		t.Errorf("Do: got %v", err)
	}
	if _, err := forbear.DoValue[int](t.Context(), r, nil); err == nil {
		t.Errorf("DoValue: got %v", err)
	}
}

func TestNilMarksStayNil(t *testing.T) {
	if err := forbear.Retryable(nil, forbear.Hint{}); err != nil {
		t.Errorf("Retryable: %v", err)
	}
	if err := forbear.Terminal(nil); err != nil {
		t.Errorf("Terminal: %v", err)
	}
}

// Between attempts Do waits what the decision says, to the nanosecond.
func TestDoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithRand(half))
		start, at := time.Now(), []time.Duration(nil)
		err := r.Do(t.Context(), func(ctx context.Context) error {
			at = append(at, time.Since(start))
			return failing(ctx)
		})
		want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond}
		if !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Elapsed != 3500*time.Millisecond {
			t.Errorf("got %v, want 3.5s elapsed", err)
		}
	})
}

func TestPerAttemptTimeout(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	bubble(t, "a slow attempt is retried", func(t *testing.T) {
		r := quiet(t, forbear.Policy{PerAttempt: time.Second}, forbear.WithClassifier(edge.ClassifyNet), forbear.WithRand(half))
		runs, start := 0, time.Now()
		err := r.Do(t.Context(), func(ctx context.Context) error {
			if runs++; runs < 3 {
				return hang(ctx)
			}
			return nil
		})
		if err != nil || time.Since(start) != 2*time.Second+1500*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
	bubble(t, "the caller's deadline is not the attempt's", func(t *testing.T) {
		r := quiet(t, forbear.Policy{PerAttempt: time.Minute}, forbear.WithClassifier(edge.ClassifyNet))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Do(ctx, hang)
		if !errors.Is(err, forbear.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCancelDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.NewTokenBucket(10, 0)
		var seen recorder
		r := quiet(t, forbear.Policy{}, forbear.WithBudget(b), forbear.WithRand(half), forbear.WithObserver(seen.observer()))
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the user went home")
		time.AfterFunc(200*time.Millisecond, func() { cancel(gone) })
		start := time.Now()
		err := r.Do(ctx, failing)
		for _, want := range []error{forbear.ErrCanceled, gone, errFlaky} {
			if !errors.Is(err, want) {
				t.Errorf("got %v, want it to be %v", err, want)
			}
		}
		e, ok := errors.AsType[*forbear.Error](err)
		if !ok || e.Attempts != 1 || e.Retryable() {
			t.Errorf("got %+v, want one attempt", e)
		}
		if got := time.Since(start); got != 200*time.Millisecond {
			t.Errorf("returned after %v, want 200ms", got)
		}
		if used := b.Level(time.Now()).Used; used != 0 {
			t.Errorf("the budget was not refunded: %v used", used)
		}
		if want := []string{"start 1", "end 1", "retry 2", "stop 1 canceled"}; !slices.Equal(seen.events, want) {
			t.Errorf("events %q, want %q", seen.events, want)
		}
	})
}

func TestDeadlines(t *testing.T) {
	bubble(t, "no attempt without time for it", func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithRand(half))
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Millisecond)
		defer cancel()
		op, runs := failTimes(9, forbear.Retryable(errFlaky, forbear.Hint{}))
		start := time.Now()
		err := r.Do(ctx, op)
		if !errors.Is(err, forbear.ErrDeadline) || !errors.Is(err, errFlaky) || *runs != 1 || time.Since(start) != 0 {
			t.Errorf("got %v, %d runs, after %v", err, *runs, time.Since(start))
		}
	})
	bubble(t, "a wait is cut to what is left", func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithRand(func() float64 { return 0.999 }))
		ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
		defer cancel()
		op, runs := failTimes(1, forbear.Retryable(errFlaky, forbear.Hint{}))
		if err := r.Do(ctx, op); err != nil || *runs != 2 {
			t.Errorf("got %v after %d runs, want the second to fit", err, *runs)
		}
	})
	bubble(t, "a server's wait that does not fit fails at once", func(t *testing.T) {
		r := quiet(t, forbear.Policy{})
		start := time.Now()
		err := r.Do(t.Context(), func(context.Context) error {
			return forbear.Retryable(errFlaky, forbear.Hint{Floor: 45 * time.Second})
		})
		e, ok := errors.AsType[*forbear.Error](err)
		if !ok || !errors.Is(err, forbear.ErrDeadline) || e.RetryAfter != 45*time.Second || time.Since(start) != 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"canceled before": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
		"a zero deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Time{})
		},
	} {
		bubble(t, name, func(t *testing.T) {
			ctx, cancel := end(t.Context())
			defer cancel()
			b := budget.NewRatio(budget.Policy{Ratio: 1, Window: time.Minute})
			op, runs := failTimes(0, nil)
			err := quiet(t, forbear.Policy{}, forbear.WithBudget(b)).Do(ctx, op)
			e, ok := errors.AsType[*forbear.Error](err)
			if !ok || e.Attempts != 0 || *runs != 0 || !errors.Is(err, ctx.Err()) {
				t.Errorf("got %v after %d runs", err, *runs)
			}
			if got := b.Level(time.Now()).Allowed; got != 0 {
				t.Errorf("a call that was not made counts %v in the budget", got)
			}
		})
	}
}

func TestWithMaxRetries(t *testing.T) {
	for _, tt := range []struct {
		name     string
		policy   forbear.Policy
		n        int
		attempts int
	}{
		{"none", forbear.Policy{}, 0, 1},
		{"negative", forbear.Policy{}, -3, 1},
		{"fewer", forbear.Policy{}, 1, 2},
		{"more than the policy", forbear.Policy{MaxRetries: 1}, 5, 6},
		{"above the range", forbear.Policy{}, 99, 6},
		{"disabled stays disabled", forbear.Policy{Disabled: true}, 5, 1},
		{"webhooks count attempts", forbear.Policy{Kind: forbear.Webhook}, 99, 8},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			r := quiet(t, tt.policy, forbear.WithBudget(unlimited()), forbear.WithRand(func() float64 { return 0 }), forbear.WithCallerDeadLetter())
			op, runs := failTimes(100, forbear.Retryable(errFlaky, forbear.Hint{}))
			err := r.Do(forbear.WithMaxRetries(t.Context(), tt.n), op)
			if *runs != tt.attempts || !errors.Is(err, forbear.ErrExhausted) {
				t.Errorf("%d attempts, want %d (%v)", *runs, tt.attempts, err)
			}
		})
	}
}

// TestAttemptTimeoutIsRetried: a timeout that forbear sets is a timeout of R-4,
// marked or not, and the total bounds the attempts as well.
func TestAttemptTimeoutIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{PerAttempt: time.Second, Total: 3 * time.Second, Backoff: forbear.Backoff{Base: time.Millisecond, Cap: time.Millisecond}})
		attempts := 0
		start := time.Now()
		err := r.Do(t.Context(), func(ctx context.Context) error {
			attempts++
			<-ctx.Done()
			return ctx.Err()
		})
		if attempts < 3 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, forbear.ErrDeadline) {
			t.Errorf("%d attempts, %v; want three or four and ErrDeadline", attempts, err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("took %v, over the total of 3s", took)
		}
	})
}
