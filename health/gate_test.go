package health_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/internal/window"
)

// start lies at the beginning of a slot, so that counts do not depend on the
// moment of the test.
var start = window.Epoch().Add(time.Hour)

func record(g *health.Gate, good, failed int, at time.Time) {
	for range good {
		g.Record(true, at)
	}
	for range failed {
		g.Record(false, at)
	}
}

// TestGateJudgesWithItsError holds where a limit of 50 % closes: at Wilson's lower
// bound of 99.9 %, as the circuit breaker does.
func TestGateJudgesWithItsError(t *testing.T) {
	for _, tt := range []struct {
		good, failed int
		healthy      bool
	}{
		{0, 0, true},
		{0, 19, true}, // too few
		{4, 16, true},
		{3, 17, false},
		{50, 50, true},
		{35, 65, true},
		{34, 66, false},
		{452, 548, true},
		{451, 549, false},
	} {
		g := health.New(health.Policy{MinSuccess: 0.5}.WithDefaults())
		record(g, tt.good, tt.failed, start)
		if got := g.Healthy(start); got != tt.healthy {
			t.Errorf("%d good, %d failed: healthy is %v, want %v", tt.good, tt.failed, got, tt.healthy)
		}
	}
}

// TestGateForgets follows an outage to its end: first attempts go on, and their
// success opens the gate again. Without any, the window empties.
func TestGateForgets(t *testing.T) {
	g := health.New(health.Policy{MinSuccess: 0.5}.WithDefaults())
	record(g, 0, 100, start)
	later := start.Add(30 * time.Second)
	if g.Healthy(later) || g.Rate(later) != 0 {
		t.Errorf("after 100 failures: healthy %v, rate %v, want false and 0", g.Healthy(later), g.Rate(later))
	}
	record(g, 100, 0, later)
	if !g.Healthy(later) || g.Rate(later) != 0.5 {
		t.Errorf("after 100 successes more: healthy %v, rate %v, want true and 0.5", g.Healthy(later), g.Rate(later))
	}
	empty := start.Add(2 * time.Minute)
	if !g.Healthy(empty) || g.Rate(empty) != 1 {
		t.Errorf("empty window: healthy %v, rate %v, want true and 1", g.Healthy(empty), g.Rate(empty))
	}
}

// TestChanceClosesNoGate plays an hour at 45 % of failures. A limit that is merely
// passed would close the gate again and again.
func TestChanceClosesNoGate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	g := health.New(health.Policy{MinSuccess: 0.5}.WithDefaults())
	closed := 0
	const calls = 36_000
	for i := range calls {
		now := start.Add(time.Duration(i) * 100 * time.Millisecond)
		if g.Record(rng.Float64() >= 0.45, now); !g.Healthy(now) {
			closed++
		}
	}
	if closed > calls/100 {
		t.Errorf("closed after %d of %d attempts, want at most 1 %%", closed, calls)
	}
}

func TestGateAllocatesNothing(t *testing.T) {
	g := health.New(health.Policy{MinSuccess: 0.5}.WithDefaults())
	if n := testing.AllocsPerRun(100, func() {
		g.RecordGoodAt(time.Hour)
		g.Record(false, start)
		g.Healthy(start)
		g.Rate(start)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestPolicyCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy health.Policy
		want   []string
	}{
		{"none", health.Policy{}, nil},
		{"usual", health.Policy{MinSuccess: 0.5, Window: 30 * time.Second, MinCalls: 10}, nil},
		{"percent", health.Policy{MinSuccess: 50}, []string{"health.min_success 50 is not a fraction: want 0 to 1, such as 0.2"}},
		{"all", health.Policy{MinSuccess: 1}, []string{"health.min_success 100% stops retries at the first failure: set disabled instead"}},
		{"negative", health.Policy{MinSuccess: 0.5, Window: -1, MinCalls: -1}, []string{"health.window -1ns is not in 0-1h, such as 30s", "health.min_calls -1 is negative"}},
		{"no limit", health.Policy{Window: time.Minute}, []string{"health has a window or min_calls without min_success: set min_success"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			tt.policy.Check(func(field, rule, format string, args ...any) {
				if rule != "" {
					t.Errorf("%s cites rule %s, which sets no figure for a gate", field, rule)
				}
				got = append(got, field+" "+fmt.Sprintf(format, args...))
			})
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if p := (health.Policy{}).WithDefaults(); p.Enabled() || p != (health.Policy{}) {
		t.Errorf("no gate has the defaults %+v", p)
	}
}

func ExampleGate() {
	g := health.New(health.Policy{MinSuccess: 0.5}.WithDefaults())
	now := time.Now()
	for range 20 {
		g.Record(false, now)
	}
	fmt.Println("retry:", g.Healthy(now))
	// Output:
	// retry: false
}
