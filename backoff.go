package forbear

import (
	"cmp"
	"time"

	"github.com/forbear-go/forbear/internal/duration"
)

// schedule sets the wait of a retry, or stops when no wait fits into what is
// left. The backoff's ceiling may be cut to fit; the server's floor never is
//
func (p *Policy) schedule(d Decision, s *State, h Hint, now time.Time, draw func() float64) Decision {
	left := p.remaining(s, now)
	if left <= p.MinAttempt { // before subtracting: left may be very negative
		return d.stop(ReasonDeadline)
	}
	room := left - p.MinAttempt
	if h.Floor > room {
		return d.stop(ReasonHintTooLong)
	}
	var low, high, reach time.Duration
	if d.Reason == ReasonRetryable && !p.atOnce(s, h) {
		low, high, reach = p.Backoff.span(s, cmp.Or(h.Base, p.Backoff.Base))
	}
	if low > room {
		return d.stop(ReasonDeadline)
	}
	if high > room {
		high, reach = room, room
	}
	floor := max(low, h.Floor)
	spread := max(min(h.Spread, room-max(high, floor)), 0)
	d.Retry = true
	d.Floor = floor
	d.Ceiling = duration.Sum(max(high, floor), spread)
	d.Wait = max(min(duration.Between(low, reach, draw()), high), floor)
	if spread > 0 {
		d.Wait += duration.Between(0, spread, draw())
	}
	return d
}

// atOnce reports whether the hint takes the place of the backoff: before the first
// retry, and before further ones where its floor is no shorter than a backoff begins
// with. A crowd that is told "at once" each time would come back as a crowd each time.
func (p *Policy) atOnce(s *State, h Hint) bool {
	return h.NoBackoff && (s.retries() == 0 || h.Floor >= p.Backoff.Base)
}

// span returns the range of the wait before the next attempt, before hints and
// deadlines. The wait is drawn uniformly from [low, reach], and is high where that
// is more. Decorrelated jitter alone reaches beyond: it is drawn first and capped
// then, as published, so that late waits gather at the cap.
func (b *Backoff) span(s *State, base time.Duration) (low, high, reach time.Duration) {
	if len(b.Schedule) > 0 {
		low, high = b.step(s.attempt())
		return low, high, high
	}
	n := s.retries()
	if b.Jitter == JitterDecorrelated {
		prev := min(max(s.PrevWait, base), b.Cap)
		reach = duration.Sum(prev, duration.Sum(prev, prev))
		return min(base, b.Cap), min(reach, b.Cap), reach
	}
	high = duration.Ceiling(base, b.Cap, n)
	return 0, high, high
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

// remaining returns what is left of the call: the earlier of the caller's
// deadline and the policy's total.
func (p *Policy) remaining(s *State, now time.Time) time.Duration {
	left := p.Total
	if !s.Start.IsZero() {
		// A start in the future comes from another machine's clock.
		left -= max(now.Sub(s.Start), 0)
	}
	if !s.Deadline.IsZero() {
		left = min(left, s.Deadline.Sub(now))
	}
	return left
}
