// Package duration is the arithmetic of waits: ceilings that double and sums
// that do not overflow.
package duration

import (
	"math"
	"math/bits"
	"time"
)

// Ceiling returns min(limit, base x 2^n), without overflow for any n.
// The wait before retry k, the first being 1, has n = k - 1.
func Ceiling(base, limit time.Duration, n int) time.Duration {
	if base <= 0 || limit <= 0 {
		return 0
	}
	// One doubling more than fits in 63 bits is beyond every limit.
	if n = max(n, 0); n > 63-bits.Len64(uint64(base)) {
		return limit
	}
	return min(base<<n, limit)
}

// Between returns the point at fraction u, in [0, 1), of [low, high].
func Between(low, high time.Duration, u float64) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(u*float64(high-low))
}

// Sum returns a + b for non-negative durations; what does not fit is the longest
// duration there is.
func Sum(a, b time.Duration) time.Duration {
	if c := a + b; c >= a {
		return c
	}
	return math.MaxInt64
}
