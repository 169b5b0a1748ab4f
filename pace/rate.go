package pace

import (
	"math"
	"time"
)

// This file is the rule: how the rate falls, and how it grows.

const (
	below       = 0.98 // of the accepted rate, or of a proven one
	fine        = 0.01 // the first step up from a rate that is known
	coarse      = 0.16 // from one that is known from a handful of sends
	quick       = 1    // from none: it doubles
	unknown     = 20   // the rate to begin with where none is known
	deep        = 0.7  // a fall below this share is a guess: the rate is searched for
	slowestRate = 1    // what one can learn from takes at least a second
	price       = 20   // successes for each refusal, before a known rate is put to the test
	mostOwed    = 60
	patience    = 3 * time.Second // without a refusal, after which nothing is owed
	linear      = 50              // below this rate the steps are the same for all
)

// plateau is a time without refusals.
type plateau struct {
	since, checked time.Duration
	rate           float64 // when it was checked
}

// test is a question put to the dependency by sending less: does it refuse less?
type test struct {
	on           bool
	since        time.Duration
	share, speed float64 // of refusals and of sends, before
}

// tooMany ends a round with too many refusals: the rate falls, unless that has been tried
// and has not helped.
func (p *Pacer) tooMany(now, took time.Duration) {
	n, share := p.round.outcomes(), p.round.share()
	if p.test.on && share <= most {
		if n < 2*enoughFor {
			return // the test needs more
		}
		if now-p.test.since < shortest+roundTime {
			p.begin(now) // what was sent before may still fill a window
			return
		}
	}
	if p.test.on && (p.test.failed(share, p.rate) || p.before > 0 && share <= most && math.Abs(share-p.before) < 0.3*p.before) {
		p.before, p.others, p.search, p.step = share, share, true, coarse
		p.set(p.rate/(1-share), now)
	} else {
		if lately := p.lately.with(&p.round); !p.test.on || lately > 3*p.test.share {
			p.test = test{on: true, since: now, share: lately, speed: float64(n) / max(took, time.Millisecond).Seconds()}
		}
		p.others = 0
		p.settle(now)
	}
	p.begin(now)
}

// failed reports whether as many are refused as before, though less was sent: then
// the refusals have nothing to do with the rate. One path of many that is always
// refused, or one tenant, must not take the others' turns. A limit would refuse
// fewer; how many, is known from what it accepted before.
func (t *test) failed(share, rate float64) bool {
	expected := max(1-(1-t.share)*t.speed/rate, 0)
	return share <= most && expected <= t.share/2 && share >= (expected+2*t.share)/3 && share <= 3*t.share
}

// settle lets the rate fall to one that is borne: a proven one, and when that does not hold
// either, what has been accepted. That may be too little: a limit that spaces its requests
// refuses every second one of a client that is slightly too fast, and a limit that counts
// its refusals refuses all. Either accepts more at the right rate.
func (p *Pacer) settle(now time.Duration) {
	held := p.proven
	if p.round.longest <= 2 {
		held = max(held, p.held)
	}
	rate := max(below*p.good.rate(now), 0.97*min(held, p.rate))
	p.proven, p.held = 0, 0
	switch {
	case p.search && p.step > 4*fine: // closer each time, also after a leap across the limit
		p.step = min(p.step/4, coarse)
	case p.free(), rate < deep*p.rate && p.step < quick, p.step > coarse:
		p.search, p.step = true, coarse
	default:
		p.search, p.step = false, fine
	}
	p.set(rate, now)
}

// clean ends a round without refusals, or with those alone that are to be expected.
func (p *Pacer) clean(now, took time.Duration) {
	p.test.on = false
	p.others += (p.round.share() - p.others) / 10
	if p.others < tolerated/2 {
		p.others = 0
	}
	p.prove(now)
	calm := now - p.calmed.since
	if !p.search && p.others == 0 && (calm < shortest || calm < patience && p.owed > 0) {
		p.begin(now)
		return
	}
	switch used := p.grow(now, took); {
	case !used || p.step == quick:
	case p.search:
		p.step = min(1.25*p.step, 0.8)
	default:
		p.step *= 2
	}
}

// prove notes what a round without refusals proves: the rate of a second ago, since a
// limit may count by the second; while the rate is searched for, the present one will do.
func (p *Pacer) prove(now time.Duration) {
	c := &p.calmed
	switch {
	case p.round.refused > 0 || p.step == quick:
	case now-c.checked >= shortest:
		p.proven, p.again = c.rate, false
		c.checked, c.rate = now, p.rate
	}
	if p.round.refused == 0 && p.step != quick {
		p.held = p.rate
	}
}

// grow begins the next round at a higher rate, if this one's was used.
func (p *Pacer) grow(now, took time.Duration) bool {
	used := p.line.Len() > 0 || float64(p.round.turns) >= 0.8*p.rate*took.Seconds()
	if used {
		// The root makes the smaller of two clients grow faster, in relation: they
		// come to share a limit.
		more := min(p.step*math.Sqrt(max(p.rate, linear)*200), p.rate)
		if p.step == quick {
			more = p.rate
		}
		p.set(p.rate+more, now)
	}
	p.begin(now)
	return used
}

// set changes the rate. The next turn comes sooner or later in proportion.
func (p *Pacer) set(rate float64, now time.Duration) {
	old := p.rate
	p.rate = max(rate, slowestRate)
	if p.rate < old {
		p.calmed = plateau{since: now, checked: now, rate: p.rate}
	}
	if math.IsInf(old, 1) {
		p.next = now
	} else if p.next > now {
		p.next = now + time.Duration(float64(p.next-now)*old/p.rate)
	}
	p.line.wake()
}
