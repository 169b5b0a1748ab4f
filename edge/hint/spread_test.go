package hint_test

import (
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear/edge/hint"
)

func TestSpread(t *testing.T) {
	for _, tc := range []struct {
		wait  time.Duration
		share float64
		want  time.Duration
	}{
		{0, hint.SpreadShare, 0},
		{2900 * time.Millisecond, hint.SpreadShare, 290 * time.Millisecond},
		{45 * time.Second, hint.SpreadShare, 4500 * time.Millisecond},
		{time.Minute, hint.SpreadShare, 5 * time.Second},
		{math.MaxInt64, hint.SpreadShare, 5 * time.Second},
		{math.MaxInt64, 1, 5 * time.Second},
		{time.Second, 1, time.Second},
		{time.Minute, 0, 0},
	} {
		if got := hint.Spread(tc.wait, tc.share); got != tc.want {
			t.Errorf("%v above %v: %v, want %v", tc.share, tc.wait, got, tc.want)
		}
	}
}
