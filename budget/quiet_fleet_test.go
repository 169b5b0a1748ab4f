package budget_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// The fleet of docs/guides/fleet-budget.md: so few calls that the floors of its
// instances are more than its share.
const (
	quietInstances = 50
	quietCalls     = 165 // of all instances in a window of 30 s
)

// outage lets a quiet fleet call a dead dependency for two windows, or four; pick says which
// instance makes a call. It returns the most retries of any window, and what that
// window's load was as a multiple of its calls.
func outage(instances []budget.Budget, pick func(call int) int) (most int, multiple float64) {
	const window = 30 * time.Second
	var initial, retries []time.Time
	for call := range ringtest.Size(2, 4) * quietCalls {
		now, b := time.Now(), instances[pick(call)]
		initial = append(initial, now)
		b.Request(now)
		for range 3 {
			if b.Spend(now, budget.Transient) {
				retries = append(retries, now)
			}
		}
		time.Sleep(window / quietCalls)
	}
	for _, end := range initial[quietCalls:] { // the first window is not a whole one
		used, calls := within(retries, end.Add(-window), end), within(initial, end.Add(-window), end)
		if used >= most {
			most, multiple = used, 1+float64(used)/float64(calls)
		}
	}
	return most, multiple
}

func inTurn(call int) int { return call % quietInstances }

// mostly gives the first instance more than half of the calls.
func mostly(call int) int {
	if call%2 == 0 {
		return 0
	}
	return call % quietInstances
}

// A budget of each instance's own: the formula's figure is reached, and not exceeded.
func TestQuietFleetAddsUpItsFloors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pick  func(int) int
		least int // that the floors come to, or this shows nothing
	}{
		{"in turn", inTurn, quietInstances * budget.DefaultMinRetries},
		{"one busy", mostly, 60},
		{"random", func(int) int { return rand.IntN(quietInstances) }, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				policy := budget.Policy{}.WithDefaults()
				var instances []budget.Budget
				for range quietInstances {
					instances = append(instances, budget.NewRatio(policy))
				}
				most, multiple := outage(instances, tt.pick)
				t.Logf("%d retries in a window, %.2f times the calls", most, multiple)
				if limit := int(policy.AllowedEach(quietInstances, quietCalls+1)); most > limit || most < tt.least {
					t.Errorf("%d retries in a window of %d calls, want %d to %d", most, quietCalls, tt.least, limit)
				}
			})
		})
	}
}

// One budget for the fleet: the floor counts once, and the share is all there is.
func TestQuietFleetWithOneBudgetKeepsToItsShare(t *testing.T) {
	for name, pick := range map[string]func(int) int{"in turn": inTurn, "one busy": mostly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var instances []budget.Budget
				for _, b := range newFleet(t, quietInstances, budget.FleetOptions{}).instances {
					instances = append(instances, b)
				}
				most, multiple := outage(instances, pick)
				t.Logf("%d retries in a window, %.2f times the calls", most, multiple)
				lease := 0.2 * quietCalls * fleetLease.Seconds() / 30
				if limit := int(math.Ceil(0.2*quietCalls + lease)); most > limit || most < limit/2 {
					t.Errorf("%d retries in a window of %d calls, want at most %d, and half of them at least", most, quietCalls, limit)
				}
			})
		})
	}
}

func TestAllowedEach(t *testing.T) {
	standard := budget.Policy{}.WithDefaults()
	strict := standard
	strict.MinRetries = 0
	for _, tt := range []struct {
		p       budget.Policy
		n       int
		initial int64
		want    int64
	}{
		{standard, 50, 0, 150},
		{standard, 50, 165, 180},
		{standard, 1, 165, 33},
		{standard, 0, 0, 3},
		{strict, 50, 165, 33},
		{standard, math.MaxInt32, math.MaxInt64, math.MaxInt64/5 + 3*(math.MaxInt32-1)},
		{budget.Policy{Ratio: 1, Of: budget.OfTotal, MinRetries: 3}, 50, 165, math.MaxInt64},
	} {
		if got := tt.p.AllowedEach(tt.n, tt.initial); got != tt.want {
			t.Errorf("%+v: %d instances with %d calls may send %d retries, want %d", tt.p, tt.n, tt.initial, got, tt.want)
		}
	}
}
