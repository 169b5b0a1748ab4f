package forbear

import (
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// outcomes counts how the latest attempts ended: the last so many of them, or
// those of the last so long. Adding takes no lock.
type outcomes struct {
	// By count: a ring of outcomes, and what they add up to.
	ring         []atomic.Uint32
	next         atomic.Uint64
	failed, slow atomic.Int64
	// calm says that the ring is full of good outcomes: one more changes
	// nothing, so the success path need not write.
	calm atomic.Bool

	// By time, when ring is nil.
	byTime [3]*window.Sharded // indexed by Outcome
}

// A cell of the ring holds an Outcome plus one; 0 is empty.

func newOutcomes(p BreakerPolicy) *outcomes {
	o := &outcomes{}
	if p.WindowTime > 0 {
		for i := range o.byTime {
			o.byTime[i] = window.NewSharded(p.WindowTime)
		}
		return o
	}
	o.ring = make([]atomic.Uint32, max(p.Window, 1))
	return o
}

func (o *outcomes) add(out Outcome, now time.Time) {
	if o.ring == nil {
		o.byTime[out].Add(now, 1)
		if out != OutcomeGood {
			o.counter(out).Add(1) // only to tell that there is something to judge
		}
		return
	}
	if out == OutcomeGood && o.settled() {
		return
	}
	i := (o.next.Add(1) - 1) % uint64(len(o.ring))
	before := o.ring[i].Swap(uint32(out) + 1)
	if before == uint32(out)+1 {
		return
	}
	if before > uint32(OutcomeGood)+1 {
		o.counter(Outcome(before - 1)).Add(-1)
	}
	if out != OutcomeGood {
		o.counter(out).Add(1)
		o.calm.Store(false)
	}
}

// settled reports whether a good outcome may go unrecorded, and notes it.
func (o *outcomes) settled() bool {
	if o.calm.Load() {
		return true
	}
	if o.ring == nil || o.suspicious() || o.next.Load() < uint64(len(o.ring)) {
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

func (o *outcomes) counter(out Outcome) *atomic.Int64 {
	if out == OutcomeSlow {
		return &o.slow
	}
	return &o.failed
}

// suspicious reports whether the window holds anything but good outcomes.
func (o *outcomes) suspicious() bool { return o.failed.Load() > 0 || o.slow.Load() > 0 }

// sums returns the number of attempts in the window, and of the failed and the
// slow ones among them.
func (o *outcomes) sums(now time.Time) (calls, failed, slow int64) {
	if o.ring != nil {
		return int64(min(o.next.Load(), uint64(len(o.ring)))), o.failed.Load(), o.slow.Load()
	}
	failed, slow = o.byTime[OutcomeFailed].Sum(now), o.byTime[OutcomeSlow].Sum(now)
	return o.byTime[OutcomeGood].Sum(now) + failed + slow, failed, slow
}
