package partial_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge/partial"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// besideAGate plays a load with and without a health gate at 50 %, and the same
// luck. The breaker is off, so that the gate alone makes the difference.
func besideAGate(t *testing.T, l partial.Load, d partial.Dependency) (with, without partial.Result) {
	t.Helper()
	p := forbear.Policy{Breaker: breaker.Policy{Disabled: true}}
	p.Backoff.Base = 50 * time.Millisecond
	without = l.Run(t, byDo, d, p)
	p.Health = health.Policy{MinSuccess: 0.5}
	with = l.Run(t, byDo, d, p)
	t.Logf("%v: %6.2f %% with a gate, %6.2f %% without; %.3f and %.3f sends a call",
		l, with.Success(), without.Success(), with.PerCall(), without.PerCall())
	return with, without
}

// TestGateLeavesPartialFailuresAlone holds that a gate takes no retry from calls
// which retries cure: at 5 to 45 % of random failures it costs at most 2 points.
func TestGateLeavesPartialFailuresAlone(t *testing.T) {
	for _, share := range ringtest.Size([]float64{20, 45}, []float64{5, 10, 20, 30, 40, 45}) {
		for _, warm := range []time.Duration{0, time.Minute} {
			l := partial.Load{Callers: 20, Think: 100 * time.Millisecond, Warm: warm, For: 30 * time.Second, Seed: 1}
			t.Run(fmt.Sprintf("%v %%, %v", share, l), func(t *testing.T) {
				with, without := besideAGate(t, l, partial.Random(share/100))
				if with.Success() < without.Success()-2 {
					t.Errorf("%.2f %% succeed, want %.2f %% less 2 points", with.Success(), without.Success())
				}
			})
		}
	}
}

// TestGateSparesADeadDependency holds what a gate is for: the retries of an outage
// are saved, and every call is still tried once. A cold gate knows within twenty
// attempts; a warm one when failures are more than half of its minute.
func TestGateSparesADeadDependency(t *testing.T) {
	for _, tt := range []struct {
		warm time.Duration
		most float64 // sends a call
	}{{0, 1.01}, {time.Minute, 1.12}} {
		l := partial.Load{Callers: 20, Think: 100 * time.Millisecond, Warm: tt.warm, For: 2 * time.Minute, Seed: 1}
		t.Run(l.String(), func(t *testing.T) {
			with, without := besideAGate(t, l, partial.Random(1))
			if with.PerCall() > tt.most || without.PerCall() < 1.15 {
				t.Errorf("%.3f sends a call, %.3f without a gate; want at most %v, and 1.15 without", with.PerCall(), without.PerCall(), tt.most)
			}
			if with.Refused > 0 {
				t.Errorf("%d calls were never sent: a gate stops retries only", with.Refused)
			}
		})
	}
}
