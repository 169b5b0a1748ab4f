package spread_test

import (
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/spread"
)

func TestOver(t *testing.T) {
	for _, tc := range []struct {
		wait  time.Duration
		share float64
		want  time.Duration
	}{
		{0, spread.Share, 0},
		{2900 * time.Millisecond, spread.Share, 290 * time.Millisecond},
		{45 * time.Second, spread.Share, 4500 * time.Millisecond},
		{time.Minute, spread.Share, 5 * time.Second},
		{math.MaxInt64, spread.Share, 5 * time.Second},
		{math.MaxInt64, 1, 5 * time.Second},
		{time.Second, 1, time.Second},
		{time.Minute, 0, 0},
	} {
		if got := spread.Over(tc.wait, tc.share); got != tc.want {
			t.Errorf("%v above %v: %v, want %v", tc.share, tc.wait, got, tc.want)
		}
	}
}
