package probe

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/probe/law"
)

// TestLikely: the base of a policy is one that someone sets, and not another one that a wide
// interval has in it.
func TestLikely(t *testing.T) {
	for _, c := range []struct{ low, base, high, want int }{ // milliseconds
		{190, 206, 220, 200},
		{90, 206, 320, 200},
		{95, 100, 130, 100},
		{480, 510, 2000, 500},
		{900, 1040, 1200, 1000},
		{230, 252, 270, 250},
		{0, 0, 0, 1},
	} {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		if got := likely(law.Growth{Low: ms(c.low), Base: ms(c.base), High: ms(c.high)}); got != ms(c.want) {
			t.Errorf("%d ms in %d to %d: %s, want %d ms", c.base, c.low, c.high, got, c.want)
		}
	}
}

// TestTimeout: an attempt that ends a little late has the time-out that was set.
func TestTimeout(t *testing.T) {
	for took, want := range map[int]int{990: 1000, 1003: 1000, 1100: 1000, 1250: 1200, 2520: 2500, 5110: 5000, 10_400: 10_000} { // milliseconds
		if got := timeout(time.Duration(took) * time.Millisecond); got != time.Duration(want)*time.Millisecond {
			t.Errorf("%d ms: %s, want %d ms", took, got, want)
		}
	}
}
