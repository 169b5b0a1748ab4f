package breaker

import (
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// outcomes counts how the latest attempts ended, in both windows of
// INTG-STD-033: the last so many of them, and those of the last so long. Adding
// takes no lock.
type outcomes struct {
	// By number: a ring of outcomes, and what they add up to.
	ring         []atomic.Uint32
	next         atomic.Uint64
	failed, slow atomic.Int64
	limited      atomic.Int64 // of the failed
	// calm says that the ring is full of good outcomes: one more changes
	// nothing, so the success path need not write.
	calm atomic.Bool

	// By time: all attempts, and the bad ones apart.
	calls *window.Sharded
	bad   [3]*window.Sharded // indexed by Outcome; none for good ones
}

// A cell of the ring holds an Outcome plus one; 0 is empty.

func newOutcomes(p Policy) *outcomes {
	o := &outcomes{ring: make([]atomic.Uint32, max(p.Window, 1)), calls: window.NewSharded(p.WindowTime)}
	o.bad[Failed], o.bad[Slow] = window.NewSingle(p.WindowTime), window.NewSingle(p.WindowTime)
	return o
}

func (o *outcomes) add(out Outcome, now time.Time) {
	o.calls.Add(now, 1)
	if out == Good {
		if o.steady() {
			return
		}
	} else {
		o.bad[out.plain()].Add(now, 1)
	}
	i := (o.next.Add(1) - 1) % uint64(len(o.ring))
	before := o.ring[i].Swap(uint32(out) + 1)
	if before == uint32(out)+1 {
		return
	}
	if before > uint32(Good)+1 {
		o.count(Outcome(before-1), -1)
	}
	if out != Good {
		o.count(out, 1)
		o.calm.Store(false)
	}
}

// steady reports whether a good outcome need not go into the ring, and
// counts it.
func (o *outcomes) steady() bool {
	if o.calm.Load() {
		return true
	}
	if o.suspicious() || o.next.Load() < uint64(len(o.ring)) {
		return false
	}
	o.calm.Store(true)
	// A bad outcome counts itself before it ends the calm, so that either it or
	// we see the other.
	if o.suspicious() {
		o.calm.Store(false)
		return false
	}
	return true
}

// count adds n to what the ring holds of a bad outcome.
func (o *outcomes) count(out Outcome, n int64) {
	switch out {
	case Slow:
		o.slow.Add(n)
	case Limited:
		o.limited.Add(n)
		o.failed.Add(n)
	default:
		o.failed.Add(n)
	}
}

// plain returns Failed for all that failed.
func (o Outcome) plain() Outcome {
	if o == Limited {
		return Failed
	}
	return o
}

// suspicious reports whether the ring holds anything but good outcomes.
func (o *outcomes) suspicious() bool { return o.failed.Load() > 0 || o.slow.Load() > 0 }

// tally is what the attempts of a window add up to.
// limited are those of the failed that a limit refused, by number only.
type tally struct{ calls, failed, slow, limited int64 }

// rate returns the share of n in the calls, 0 to 1.
func (t tally) rate(n int64) float64 {
	if t.calls == 0 {
		return 0
	}
	return float64(n) / float64(t.calls)
}

// An attempt is counted as a call before it is counted as a bad one. So the bad
// ones are read first: what others add in between may only lower a rate.

// latest adds up the window by number.
func (o *outcomes) latest() (t tally) {
	t.limited, t.failed, t.slow = o.limited.Load(), o.failed.Load(), o.slow.Load()
	t.calls = int64(min(o.next.Load(), uint64(len(o.ring))))
	return t
}

// lately adds up the window by time.
func (o *outcomes) lately(now time.Time) (t tally) {
	t.failed, t.slow = o.bad[Failed].Sum(now), o.bad[Slow].Sum(now)
	t.calls = o.calls.Sum(now)
	return t
}
