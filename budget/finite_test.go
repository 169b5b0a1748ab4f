package budget_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/health"
)

// A figure that is not finite bounds nothing: whoever makes a budget, a breaker or a gate of
// one hears of it at once, by the name of the figure.
func TestConstructorsRefuseWhatIsNotFinite(t *testing.T) {
	for name, make := range map[string]func(v float64){
		"ratio":             func(v float64) { budget.NewRatio(budget.Policy{Ratio: v, Window: time.Minute}) },
		"max_multiplier":    func(v float64) { budget.NewRatio(budget.Policy{MaxMultiplier: v, Window: time.Minute}) },
		"tokens per second": func(v float64) { budget.NewTokenBucket(10, v) },
		"maxTokens":         func(v float64) { budget.NewGRPC(v, 0.1) },
		"tokenRatio":        func(v float64) { budget.NewGRPC(10, v) },
		"failure_rate":      func(v float64) { breaker.New(breaker.Policy{FailureRate: v}.WithDefaults(time.Second), nil) },
		"slow_rate":         func(v float64) { breaker.New(breaker.Policy{SlowRate: v}.WithDefaults(time.Second), nil) },
		"calls per second":  func(v float64) { breaker.BulkheadSize(v, time.Second, 1.5) },
		"min_success":       func(v float64) { health.New(health.Policy{MinSuccess: v}.WithDefaults()) },
	} {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if why := refusal(func() { make(v) }); !strings.Contains(why, name+" is "+fmt.Sprint(v)) {
				t.Errorf("%s %v: got %q", name, v, why)
			}
		}
		if why := refusal(func() { make(0.25) }); why != "" {
			t.Errorf("%s 0.25: %s", name, why)
		}
	}
}

// refusal returns what f panics with, or "".
func refusal(f func()) (why string) {
	defer func() {
		if v := recover(); v != nil {
			why = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}
