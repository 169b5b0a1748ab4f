package promretry_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/promretry"
)

// TestHealthGates shows a gate that its own attempts have closed, one of the
// caller's, which counts nothing, and a dependency without any, which has no
// series of them.
func TestHealthGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promretry.New(promretry.WithService("checkout"))
		counted := retryer(t, m, "counted", forbear.Policy{Disabled: true, Health: health.Policy{MinSuccess: 0.5}})
		for n := range 25 {
			_ = counted.Do(t.Context(), failing(min(n, 1)))
		}
		retryer(t, m, "asked", forbear.Policy{}, forbear.WithHealthGate(func(time.Time) bool { return true }))
		retryer(t, m, "none", forbear.Policy{})
		got := scrape(t, m)
		for _, want := range []string{
			`health_gate_healthy{dependency="counted",service="checkout"} 0`,
			`health_gate_healthy{dependency="asked",service="checkout"} 1`,
		} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("the scrape lacks %s", want)
			}
		}
		if rate := `health_success_rate{dependency="counted",service="checkout"} 0.0`; !strings.Contains(got, rate) {
			t.Errorf("the scrape lacks %s...", rate)
		}
		if strings.Count(got, "\nhealth_") != 3 {
			t.Errorf("want three series of health gates in:\n%s", got)
		}
	})
}
