package forbear

import (
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

// span returns the range from which the wait before the next attempt is drawn,
// before hints and deadlines: uniform in [low, high].
func (b *Backoff) span(s *State, base time.Duration) (low, high time.Duration) {
	if len(b.Schedule) > 0 {
		return b.step(s.attempt())
	}
	n := s.Retries()
	if b.Jitter == JitterDecorrelated {
		prev := min(max(s.PrevWait, base), b.Cap)
		return min(base, b.Cap), prev + min(2*prev, b.Cap-prev)
	}
	return 0, Ceiling(base, b.Cap, n)
}

// step returns the range of the wait after attempt n of a schedule: between
// the step before and the step itself, so that waits grow as R-3 asks and
// spread as R-1 asks. Beyond its end the last step repeats.
func (b *Backoff) step(n int) (low, high time.Duration) {
	n = min(n, len(b.Schedule)-1)
	high = b.Schedule[n]
	if n > 0 && b.Jitter != JitterFull {
		low = b.Schedule[n-1]
	}
	return low, high
}

// between returns the point at fraction u, in [0, 1), of [low, high].
func between(low, high time.Duration, u float64) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(u*float64(high-low))
}

// satAdd returns a + b for non-negative durations, saturating.
func satAdd(a, b time.Duration) time.Duration {
	if c := a + b; c >= a {
		return c
	}
	return 1<<63 - 1
}
