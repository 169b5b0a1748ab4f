package webhook

import (
	"time"

	"github.com/forbear-go/forbear"
)

// The figures of INTG-STD-033, and how an endpoint that keeps failing is
// slowed: each failed probe doubles the wait.
const (
	breakerWindow = 100
	breakerMin    = 20
	breakerWait   = 30 * time.Second
	breakerMax    = 10 * time.Minute
	breakerTrials = 5
)

// breaker is the circuit breaker of one lane. It belongs to the lane's lock.
type breaker struct {
	ring         [breakerWindow]bool // true: failed
	next, n, bad int
	state        forbear.BreakerState
	until        time.Time // of the open state
	wait         time.Duration
	trials       int // given out in half-open
	passed       int
}

// allow returns how many of n attempts may go out.
func (b *breaker) allow(now time.Time, n int) int {
	switch b.state {
	case forbear.BreakerOpen:
		if now.Before(b.until) {
			return 0
		}
		b.state, b.trials, b.passed = forbear.BreakerHalfOpen, 0, 0
		fallthrough
	case forbear.BreakerHalfOpen:
		// One at a time: the receiver may have just come up.
		if b.trials > b.passed {
			return 0
		}
		return min(n, 1)
	}
	return n
}

// taken notes that n attempts were given out.
func (b *breaker) taken(n int) {
	if b.state == forbear.BreakerHalfOpen {
		b.trials += n
	}
}

// returned notes that a given-out attempt was not made.
func (b *breaker) returned() {
	if b.state == forbear.BreakerHalfOpen && b.trials > b.passed {
		b.trials--
	}
}

// done notes an attempt and reports whether the breaker changed its state.
func (b *breaker) done(now time.Time, failed bool) (changed bool) {
	switch b.state {
	case forbear.BreakerOpen:
		return false // a straggler of before
	case forbear.BreakerHalfOpen:
		if failed {
			b.open(now)
			return true
		}
		if b.passed++; b.passed < breakerTrials {
			return false
		}
		*b = breaker{}
		return true
	}
	if b.n == breakerWindow {
		if b.ring[b.next] {
			b.bad--
		}
	} else {
		b.n++
	}
	b.ring[b.next] = failed
	b.next = (b.next + 1) % breakerWindow
	if failed {
		b.bad++
	}
	if b.n >= breakerMin && 2*b.bad >= b.n {
		b.open(now)
		return true
	}
	return false
}

func (b *breaker) open(now time.Time) {
	b.wait = min(max(2*b.wait, breakerWait), breakerMax)
	*b = breaker{state: forbear.BreakerOpen, until: now.Add(b.wait), wait: b.wait}
}
