package budget_test

import (
	"math"
	"testing"

	"github.com/forbear-go/forbear/budget"
)

// TestAllowedDoesNotOverflow: no count makes a budget turn over, which would allow
// nothing, or everything.
func TestAllowedDoesNotOverflow(t *testing.T) {
	const most = math.MaxInt64
	for _, tc := range []struct {
		name    string
		p       budget.Policy
		initial int64
		want    int64
	}{
		{"a fifth", budget.Policy{Ratio: 0.2}, 5_000_000_000_000_000_000, 1_000_000_000_000_000_000},
		{"a fifth of all there can be", budget.Policy{Ratio: 0.2}, most, most / 5},
		{"rounded up", budget.Policy{Ratio: 0.2, RoundUp: true}, most, most/5 + 1},
		{"of the total", budget.Policy{Ratio: 0.2, Of: budget.OfTotal}, most, most / 4},
		{"more than the requests", budget.Policy{Ratio: 9}, most, most},
		{"all of the total", budget.Policy{Ratio: 1, Of: budget.OfTotal}, 10, most},
		{"the floor", budget.Policy{Ratio: 0.2, MinRetries: 1 << 62}, 0, 1 << 62},
		{"no number", budget.Policy{Ratio: math.NaN()}, most, 0},
		{"infinite", budget.Policy{Ratio: math.Inf(1)}, most, most},
	} {
		if got := tc.p.Allowed(tc.initial); got != tc.want {
			t.Errorf("%s: %d retries of %d requests, want %d", tc.name, got, tc.initial, tc.want)
		}
	}
	if !(budget.Policy{}).Spent(0, most) {
		t.Error("a retry is left after all that there can be")
	}
}
