package forbear_test

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// Each way in which a breaker's figures may leave INTG-STD-033, and what the
// user reads.
func TestBreakerViolations(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		breaker breaker.Policy
		want    string
	}{
		{breaker.Policy{FailureRate: 0.2}, "breaker.failure_rate 20% is under 25% (INTG-STD-033, the standard on circuit breakers)"},
		{breaker.Policy{FailureRate: 1.2}, "breaker.failure_rate 1.2 is not a fraction: want 0 to 1, such as 0.2"},
		{breaker.Policy{SlowRate: -0.1}, "breaker.slow_rate -0.1 is not a fraction: want 0 to 1, such as 0.2"},
		{breaker.Policy{OpenFor: 4 * s}, "breaker.open_for 4s is under 5s (INTG-STD-033, the standard on circuit breakers)"},
		{breaker.Policy{SlowCall: -s}, "breaker.slow_call -1s is negative"},
		{breaker.Policy{WindowTime: 2 * time.Hour}, "breaker.window_time 2h0m0s is not in 0-1h, such as 30s"},
		{breaker.Policy{Window: 100_001}, "breaker.window 100001 is not in 1-100000"},
		{breaker.Policy{Window: 10}, "breaker.min_calls 20 is more than the window of 10 calls"},
		{breaker.Policy{Probes: -1}, "breaker counts must not be negative: min_calls 0, probes -1"},
		{breaker.Policy{Probes: 1 << 30}, "breaker.probes 1073741824 is not in 1-1000: all probes must succeed"},
		{breaker.Policy{OnBudget: 9}, "breaker.on_budget 9 is unknown: want signal, immediate or off"},
	} {
		p := forbear.Policy{Breaker: tt.breaker}
		if err := p.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("%+v\n got %v\nwant %s", tt.breaker, err, tt.want)
		}
	}
	for name, b := range map[string]breaker.Policy{
		"lowest rate":  {FailureRate: breaker.MinFailureRate},
		"shortest":     {OpenFor: 5 * s},
		"by time":      {WindowTime: time.Minute, MinCalls: 500},
		"small window": {Window: 10, MinCalls: 10},
		"both windows": {Window: 50, WindowTime: 30 * s},
	} {
		if err := (&forbear.Policy{Breaker: b}).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
