package forbear_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// The worked numbers of budgets, by name.

// under total failure 1,000 calls a second stay at 1,200 sends.
func TestR7OneThousandStaysAt1200(t *testing.T) {
	out := load{rate: 1000, fail: 1, duration: 90 * time.Second}.simulate(t, forbear.Policy{Strict: true}, nil)
	for from := 0; from+30 <= 90; from++ {
		if got := out.rate(from, from+30); got > 1200 {
			t.Errorf("seconds %d-%d: %.1f sends a second, want at most 1,200", from, from+30, got)
		}
	}
	if got := out.rate(30, 90); got < 1180 {
		t.Errorf("steady state: %.1f sends a second, want nearly 1,200", got)
	}
}

// R-7's rationale: without a budget 50 % failure and 3 retries make 2,500.
func TestR7WithoutBudget2500(t *testing.T) {
	out := load{rate: 1000, fail: 0.5, duration: 60 * time.Second}.simulate(t, forbear.Policy{}, unlimited())
	if got := out.rate(30, 60); math.Abs(got-2500) > 5 {
		t.Errorf("got %.1f sends a second, want 2,500", got)
	}
}

// The lesson's table: the multiplier is 1 + retries when every attempt fails.
func TestLessonMultipliers2_4_10(t *testing.T) {
	for _, tt := range []struct {
		rate, retries int
		want          float64
	}{{500, 1, 1000}, {500, 3, 2000}, {500, 9, 5000}, {1000, 3, 4000}} {
		t.Run(fmt.Sprintf("%d a second, %d retries", tt.rate, tt.retries), func(t *testing.T) {
			p := forbear.Policy{
				Kind: forbear.Event, MaxRetries: tt.retries, // the kind that allows nine
				Backoff: forbear.Backoff{Base: 100 * time.Millisecond, Cap: time.Second},
			}
			out := load{rate: tt.rate, fail: 1, duration: 20 * time.Second}.simulate(t, p, unlimited())
			if got := out.rate(10, 20); math.Abs(got-tt.want) > tt.want/100 {
				t.Errorf("got %.1f sends a second, want %v", got, tt.want)
			}
		})
	}
}

// The lesson's decision math: the share of retries in all traffic for a target
// multiplier M is (M - 1) / M.
func TestLessonMultiplierToRatio(t *testing.T) {
	for m, want := range map[float64]float64{1.10: 9.09, 1.5: 33.33, 2: 50, 4: 75} {
		share := 1 - 1/m
		if math.Abs(100*share-want) > 0.005 {
			t.Errorf("M = %v: got %.2f %%, want %v %%", m, 100*share, want)
		}
		of := budget.Policy{Ratio: share, Of: budget.OfTotal}
		if got := of.MaxAmplification(); math.Abs(got-m) > 1e-9 {
			t.Errorf("M = %v: the ratio of the total amplifies to %v", m, got)
		}
	}
	b := (forbear.Policy{Budget: budget.Policy{MaxMultiplier: 1.10}}).WithDefaults().Budget
	if got := b.Allowed(1000); got != 100 {
		t.Errorf("max_multiplier 1.10 allows %d retries for 1,000 calls, want 100", got)
	}
}

// The budget article's token bucket: 200 tokens, 20 a second.
func TestTokenBucket200Tokens20PerSecond(t *testing.T) {
	b := budget.NewTokenBucket(200, 20)
	spend := func(now time.Time, n int) (got int) {
		for range n {
			if b.Spend(now, budget.Transient) {
				got++
			}
		}
		return got
	}
	if got := spend(epoch, 500); got != 200 {
		t.Errorf("burst: %d retries, want 200", got)
	}
	total := 0
	for ms := time.Duration(100); ms <= 10_000; ms += 100 {
		total += spend(epoch.Add(ms*time.Millisecond), 50)
	}
	if total != 200 {
		t.Errorf("ten seconds of more: %d retries, want 200", total)
	}
	if got := spend(epoch.Add(time.Hour), 500); got != 200 {
		t.Errorf("after an hour: %d retries, want 200", got)
	}
	now := epoch.Add(time.Hour)
	b.Refund(now, budget.Transient)
	if got := spend(now, 2); got != 1 {
		t.Errorf("after a refund: %d retries, want 1", got)
	}
}

// The budget article: at 10 % of the last minute 10,000 calls buy 1,000.
func TestArticle10000CallsBuy1000Retries(t *testing.T) {
	p, err := forbear.Profile("cautious")
	if err != nil {
		t.Fatal(err)
	}
	b := p.WithDefaults().Budget
	if b.Window != time.Minute || b.Allowed(10_000) != 1000 {
		t.Errorf("got %d in %v, want 1,000 in 1m", b.Allowed(10_000), b.Window)
	}
}

// gRFC A6: 10 tokens and a ratio of 0.1; retries stop at half.
func TestGRPCPublishedConstants(t *testing.T) {
	b := budget.NewGRPC(10, 0.1)
	for failure := 1; failure <= 6; failure++ {
		b.Failed(epoch)
		if got, want := b.Spend(epoch, 0), failure < 5; got != want {
			t.Errorf("after failure %d: retry = %v, want %v", failure, got, want)
		}
	}
	for range 11 { // 4 tokens and eleven tenths
		b.Succeeded(epoch, 0, 0)
	}
	if !b.Spend(epoch, 0) {
		t.Error("5.1 tokens: no retry")
	}
}

// a budget is of one dependency, and its exhaustion ends the call at once
// with the original error.
func TestR7PerDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := forbear.NewSet("shop", forbear.Policy{Strict: true}, forbear.WithoutLog())
		if err != nil {
			t.Fatal(err)
		}
		fails := func(dependency string) error {
			return set.Retryer(dependency).Do(t.Context(), failing)
		}
		for range 4 {
			if err := fails("a"); !errors.Is(err, forbear.ErrBudgetExhausted) || !errors.Is(err, errFlaky) {
				t.Errorf("fewer than five calls: got %v", err)
			}
		}
		var failed *forbear.Error
		if err := fails("a"); !errors.As(err, &failed) || failed.Attempts != 2 {
			t.Errorf("the fifth call: got %v, want one retry", err)
		}
		if err := fails("b"); !errors.Is(err, forbear.ErrBudgetExhausted) {
			t.Errorf("another dependency: got %v", err)
		}
	})
}
