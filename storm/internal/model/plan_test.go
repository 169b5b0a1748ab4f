package model

import (
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
)

// plan returns one of so many retries.
func plan(retries int, b Baseline) *Plan {
	p := forbear.Policy{
		MaxRetries: retries, Backoff: forbear.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}, Breaker: breaker.Policy{Disabled: true},
	}
	return &Plan{Given: p, Policy: p.WithDefaults(), Baseline: b}
}

func TestBaselinesReplaceTheWait(t *testing.T) {
	d := forbear.Decision{Wait: 42 * time.Millisecond}
	for _, tt := range []struct {
		wait string
		want [3]time.Duration // before the first, second and fifth retry
	}{
		{"", [3]time.Duration{42 * time.Millisecond, 42 * time.Millisecond, 42 * time.Millisecond}},
		{"none", [3]time.Duration{}},
		{"fixed", [3]time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond}},
		{"exponential", [3]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, time.Second}},
		{"equal", [3]time.Duration{75 * time.Millisecond, 150 * time.Millisecond, 750 * time.Millisecond}},
	} {
		p := plan(3, Baseline{Wait: tt.wait})
		for i, n := range []int{1, 2, 5} {
			if got := p.Wait(&d, n, func() float64 { return 0.5 }); got != tt.want[i] {
				t.Errorf("%q before retry %d: %v, want %v", tt.wait, n, got, tt.want[i])
			}
		}
	}
}

// Ten deposits of 0.1 buy one retry, and a refund buys another.
func TestDepositBucket(t *testing.T) {
	b := &depositBucket{size: 2, deposit: 0.1}
	var now time.Time
	for range 9 {
		b.Request(now)
	}
	if b.Spend(now, 0) {
		t.Error("0.9 tokens bought a retry")
	}
	b.Request(now)
	if !b.Spend(now, 0) || b.Spend(now, 0) {
		t.Error("one token buys one retry")
	}
	b.Refund(now, 0)
	if got := b.Level(now); got.Allowed != 2 || got.Used < 0.99 || got.Used > 1.01 {
		t.Errorf("level %+v, want 1 of 2", got)
	}
	for range 100 {
		b.Request(now)
	}
	if b.tokens != 2 {
		t.Errorf("%v tokens in a bucket of 2", b.tokens)
	}
}

func TestCallersHaveTheBudgetOfTheirPlan(t *testing.T) {
	own := &depositBucket{size: 7}
	for _, tt := range []struct {
		name string
		plan func(*Plan)
		want float64 // retries at once
	}{
		{"the policy's floor", func(p *Plan) { p.Policy.Budget.MinRetries = 3 }, 3},
		{"none", func(p *Plan) { p.Baseline.NoBudget = true }, 1000},
		{"a bucket", func(p *Plan) { p.Baseline.Bucket = Bucket{Deposit: 0.1, Size: 2} }, 2},
		{"the caller's own", func(p *Plan) { own.tokens = 7; p.NewBudget = func() budget.Budget { return own } }, 7},
	} {
		p := plan(3, Baseline{})
		tt.plan(p)
		b := p.Caller(func() float64 { return 0 })
		n, now := 0.0, StartOfTime()
		for n < 1000 && b.Budget.Spend(now, 0) {
			n++
		}
		if n != tt.want {
			t.Errorf("%s: %v retries, want %v", tt.name, n, tt.want)
		}
	}
}

// Only a comparison may leave the standard's ranges.
func TestUncheckedPlansLeaveTheRanges(t *testing.T) {
	if err := plan(9, Baseline{}).Check(); err == nil || !strings.Contains(err.Error(), "R-2") {
		t.Errorf("nine retries: %v, want a complaint that names R-2", err)
	}
	if err := plan(9, Baseline{Unchecked: true}).Check(); err != nil {
		t.Errorf("nine retries, unchecked: %v", err)
	}
}
