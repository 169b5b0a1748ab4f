package budget_test

import (
	"math"
	"testing"

	"github.com/forbear-go/forbear/budget"
)

func TestRatioForWhatIsNoGrowth(t *testing.T) {
	for m, want := range map[float64]float64{math.Inf(1): 1, math.Inf(-1): 0, 0.5: 0, 1: 0, 2: 0.5} {
		if got := budget.RatioFor(m); got != want {
			t.Errorf("%v: %v, want %v", m, got, want)
		}
	}
	if got := budget.RatioFor(math.NaN()); got != 0 {
		t.Errorf("NaN: %v", got)
	}
}
