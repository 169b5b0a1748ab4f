package forbear

import (
	"time"

	"github.com/forbear-go/forbear/internal/backoff"
)

// span returns the range from which the wait before the next attempt is drawn,
// before hints and deadlines: uniform in [low, high].
func (b *Backoff) span(s *State, base time.Duration) (low, high time.Duration) {
	if len(b.Schedule) > 0 {
		return b.step(s.attempt())
	}
	n := s.retries()
	if b.Jitter == JitterDecorrelated {
		prev := min(max(s.PrevWait, base), b.Cap)
		return min(base, b.Cap), prev + min(2*prev, b.Cap-prev)
	}
	return 0, backoff.Ceiling(base, b.Cap, n)
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
