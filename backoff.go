package forbear

import (
	"cmp"
	"time"

	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/reason"
)

// A span is the range of a wait: drawn uniformly from [low, reach], and high where that
// is more. Decorrelated jitter alone reaches beyond: it is drawn first and capped then,
// as published, so that late waits gather at the cap.
type span struct{ low, high, reach time.Duration }

// span returns the range of the wait before a retry, before the server's floor and what
// is left of the time.
func (p *Policy) span(s *State, h Hint, why Reason) span {
	if why != reason.Retryable || p.atOnce(s, h) {
		return span{}
	}
	return p.Backoff.span(s, cmp.Or(h.Base, p.Backoff.Base))
}

// wait draws the wait of a retry that fits into room. The backoff's ceiling may be cut to
// fit; the server's floor never is.
func (d Decision) wait(w span, h Hint, room time.Duration, draw func() float64) Decision {
	if w.high > room {
		w.high, w.reach = room, room
	}
	floor := max(w.low, h.Floor)
	spread := max(min(h.Spread, room-max(w.high, floor)), 0)
	d.Retry = true
	d.Floor = floor
	d.Ceiling = duration.Sum(max(w.high, floor), spread)
	d.Wait = max(min(duration.Between(w.low, w.reach, draw()), w.high), floor)
	if spread > 0 {
		d.Wait += duration.Between(0, spread, draw())
	}
	return d
}

// atOnce reports whether the hint replaces the backoff: always before the first retry, and
// before later ones only if its floor is at least the backoff's base. A crowd that is told
// "at once" each time would otherwise come back as a crowd each time.
func (p *Policy) atOnce(s *State, h Hint) bool {
	return h.NoBackoff && (s.retries() == 0 || h.Floor >= p.Backoff.Base)
}

// span returns the range of the wait before the next attempt.
func (b *Backoff) span(s *State, base time.Duration) span {
	if len(b.Schedule) > 0 {
		low, high := b.step(s.attempt())
		return span{low, high, high}
	}
	n := s.retries()
	if b.Jitter == JitterDecorrelated {
		prev := min(max(s.PrevWait, base), b.Cap)
		reach := duration.Sum(prev, duration.Sum(prev, prev))
		return span{min(base, b.Cap), min(reach, b.Cap), reach}
	}
	high := duration.Ceiling(base, b.Cap, n)
	return span{0, high, high}
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
