package forbear_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

func quiet(t testing.TB, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	r, err := forbear.New("payments", p, append(opts, forbear.WithoutLog())...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// requestContext is what a server hands to its handlers: cancelable, with a
// deadline.
func requestContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

var errFlaky = errors.New("flaky")

func TestSuccessAllocatesNothing(t *testing.T) {
	r, ctx := quiet(t, forbear.Policy{}), requestContext(t)
	op := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(200, func() { _ = r.Do(ctx, op) }); n != 0 {
		t.Errorf("Do that succeeds at once: %v allocations, want 0", n)
	}
	value := func(context.Context) (int, error) { return 1, nil }
	if n := testing.AllocsPerRun(200, func() { _, _ = forbear.DoValue(ctx, r, value) }); n != 0 {
		t.Errorf("DoValue that succeeds at once: %v allocations, want 0", n)
	}
}

func TestTwoRetriesAllocateAtMostFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two failures in three would open the breaker in the middle.
		r := quiet(t, forbear.Policy{Breaker: breaker.Policy{Disabled: true}},
			forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))
		ctx := requestContext(t)
		failure := forbear.Retryable(errFlaky, forbear.Hint{})
		n := testing.AllocsPerRun(100, func() {
			calls := 0
			if err := r.Do(ctx, func(context.Context) error {
				if calls++; calls < 3 {
					return failure
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
		if n > 5 {
			t.Errorf("two retries: %v allocations, want at most 5", n)
		}
		t.Logf("two retries: %v allocations", n)
	})
}

// unpooled is a log that formats nothing. The standard library's handlers keep their
// buffers in pools, which the race detector empties at random; package bench holds
// the figures with them.
type unpooled struct{ lines *int }

func (unpooled) Enabled(context.Context, slog.Level) bool { return true }
func (h unpooled) Handle(_ context.Context, line slog.Record) error {
	*h.lines++
	return nil
}
func (h unpooled) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h unpooled) WithGroup(string) slog.Handler      { return h }

// TestTwoLoggedRetriesAllocateAtMostSix: a policy's defaults and the default log. An
// error is marked anew each time, which is an allocation of its own.
func TestTwoLoggedRetriesAllocateAtMostSix(t *testing.T) {
	before, lines := slog.Default(), 0
	slog.SetDefault(slog.New(unpooled{&lines}))
	defer slog.SetDefault(before)
	// Waits of nanoseconds need no timer, which is three allocations in each call.
	hurried := forbear.Policy{Backoff: forbear.Backoff{Base: 1, Cap: 1}, Breaker: breaker.Policy{FailureRate: 1}}
	r, err := forbear.New("payments", hurried, forbear.WithBudget(unlimited()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, calls := requestContext(t), 0
	op := func(context.Context) error {
		if calls++; calls%3 != 0 {
			return forbear.Retryable(errFlaky, forbear.Hint{})
		}
		return nil
	}
	n := testing.AllocsPerRun(100, func() {
		if err := r.Do(ctx, op); err != nil {
			t.Fatal(err)
		}
	})
	most := 6.0
	if race.Enabled {
		most += 2 // the logger's growing of a slice makes another one then
	}
	if n > most || lines != 2*101 { // one run more, to warm up
		t.Errorf("two logged retries: %v allocations, %d lines, want at most %v and 202", n, lines, most)
	}
	t.Logf("two logged retries: %v allocations", n)
}

func BenchmarkDoSuccess(b *testing.B) {
	r, ctx := quiet(b, forbear.Policy{}), requestContext(b)
	op := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Do(ctx, op)
	}
}

func BenchmarkDoSuccessParallel(b *testing.B) {
	r, ctx := quiet(b, forbear.Policy{}), requestContext(b)
	op := func(context.Context) error { return nil }
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = r.Do(ctx, op)
		}
	})
}

func BenchmarkDoSuccessWithoutBreaker(b *testing.B) {
	r, ctx := quiet(b, forbear.Policy{Breaker: breaker.Policy{Disabled: true}}), requestContext(b)
	op := func(context.Context) error { return nil }
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = r.Do(ctx, op)
		}
	})
}

// noStore is a budget's store that grants nothing and notes nothing.
type noStore struct{}

func (noStore) Sync(context.Context, string, time.Duration, budget.Report) (budget.Reading, error) {
	return budget.Reading{}, nil
}

func TestDoUnderAFleetBudgetAllocatesNothing(t *testing.T) {
	b, err := budget.NewFleet(budget.Policy{}, noStore{}, "k", budget.FleetOptions{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, ctx := quiet(t, forbear.Policy{}, forbear.WithBudget(b)), requestContext(t)
	op := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(200, func() { _ = r.Do(ctx, op) }); n != 0 {
		t.Errorf("Do: %v allocations, want 0", n)
	}
}
