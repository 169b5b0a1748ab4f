package storm

import (
	"math/rand/v2"
	"testing"
)

// The textbook's values, and the ends.
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		n, all    int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {1, 12, 0.0149, 0.3539}} {
		got := wilson(tt.n, tt.all)
		near(t, "low", got[0], tt.low, 1e-4)
		near(t, "high", got[1], tt.high, 1e-4)
	}
}

// The interval of the median holds the true one about as often as it says, whatever the
// number of values.
func TestMedianIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{8, 16, 24, 40} {
		const times = 2000
		held := 0
		for range times {
			var values []Duration
			for range n {
				values = append(values, Duration(1e9*rng.ExpFloat64()))
			}
			middle, low, high := median(values)
			if middle < low || middle > high {
				t.Fatalf("%d values: %v is not in %v to %v", n, middle, low, high)
			}
			if low <= 693147180 && 693147180 <= high {
				held++
			}
		}
		if share := float64(held) / times; share < 0.94 || share > 0.999 {
			t.Errorf("%d values: the interval holds the median in %.3f of the cases, want 0.95 or a little more", n, share)
		}
	}
	if m, low, high := median([]Duration{3, 1, 2}); m != 2 || low != 1 || high != 3 {
		t.Errorf("of three values: %v in %v to %v", m, low, high)
	}
}
