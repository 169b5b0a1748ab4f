package pace

import (
	"math"
	"time"
)

// This file records how sends ended, and cuts time into rounds that say something
// about the rate. What follows from a round is in rate.go.

const (
	roundTime = 250 * time.Millisecond
	quickTime = 50 * time.Millisecond  // of a round of the quick start
	watched   = 125 * time.Millisecond // of a round's sends, the outcomes of which are known
	fewest    = 4                      // outcomes of a round
	enough    = 8                      // refusals that need no full round
	suspect   = 3                      // refusals that say something
	several   = 10                     // outcomes of which one may be a refusal
	tolerated = 0.03                   // share of refusals that says nothing yet
	most      = 0.4                    // share that may have nothing to do with the rate
	calmAfter = time.Minute
)

// learner is what a Pacer knows of the rate. It is not safe for concurrent use.
type learner struct {
	rate   float64 // turns a second; infinite until it is learned
	step   float64 // of the next growth
	search bool    // the rate may be far off: it grows with every round
	round  round
	calmed plateau
	owed   int     // successes that have to come before the rate is put to the test again
	proven float64 // a rate at which nothing was refused for a second; 0 for none
	held   float64 // the rate of the latest round without refusals; 0 for none
	test   test
	lately lately
	others float64 // the share of refusals that has nothing to do with the rate
	before float64 // what it was when it last was not 0
	good   meter
	latest time.Duration // when something was last refused

	closing
}

// round is a piece of time at one rate. Only what was sent in it counts in it: the
// outcomes of earlier sends speak of an earlier rate.
type round struct {
	start, last   time.Duration // last is when the latest of its outcomes was sent
	turns         int
	good, refused int
	longest       int // run of refusals
}

func (r *round) outcomes() int { return r.good + r.refused }

func (r *round) share() float64 { return float64(r.refused) / float64(max(r.outcomes(), 1)) }

// Passed records a send that was not refused for its rate: a success, or a failure of
// another kind.
func (p *Pacer) Passed(sent, now time.Time) {
	if !p.active.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active.Load() {
		return
	}
	s, t := sinceEpoch(sent), sinceEpoch(now)
	p.good.add(t)
	if s > p.runSent {
		p.run = 0
		if p.closed {
			p.reopen(t)
		}
	}
	if s >= p.round.start {
		p.round.good++
		p.owed = max(p.owed-1, 0)
		p.judge(s, t)
	}
}

// Throttled records a send that the dependency refused for its rate. hint is the wait
// that it asked for, or 0.
func (p *Pacer) Throttled(sent, now time.Time, hint time.Duration) {
	s, t := sinceEpoch(sent), sinceEpoch(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active.Load() {
		p.learner = learner{rate: math.Inf(1), round: round{start: math.MinInt64}}
		p.good = meter{since: t, newest: slotOf(t)}
		p.until = t
		p.active.Store(true)
	}
	p.latest = t
	p.refused(s, t, hint)
	if s >= p.round.start {
		p.round.refused++
		p.owed = min(p.owed+price, mostOwed)
		p.round.longest = max(p.round.longest, p.run)
		p.calmed = plateau{since: t, checked: t, rate: p.rate}
		p.judge(s, t)
	}
}

// calm ends the pacing after a good while without a refusal.
func (p *Pacer) calm(now time.Duration) bool {
	if p.line.Len() > 0 || now-p.latest < calmAfter {
		return false
	}
	p.active.Store(false)
	p.rate, p.closed = math.Inf(1), false
	return true
}

// begin begins a round.
func (p *Pacer) begin(now time.Duration) {
	p.lately.refused = 0.7*p.lately.refused + float64(p.round.refused)
	p.lately.outcomes = 0.7*p.lately.outcomes + float64(p.round.outcomes())
	p.round = round{start: now, last: now}
}

// lately is what the latest rounds had, the later the more.
type lately struct{ refused, outcomes float64 }

// with returns the share of refusals, the round under way included.
func (l lately) with(r *round) float64 {
	return (l.refused + float64(r.refused)) / (l.outcomes + float64(r.outcomes()))
}

// judge ends the round when it has something to say, after the outcome of a send.
func (p *Pacer) judge(sent, now time.Duration) {
	r := &p.round
	r.last = max(r.last, sent)
	n, took := r.outcomes(), now-max(r.start, p.good.since)
	switch {
	case p.closed || n < fewest:
		return
	case p.free():
		p.judgeFree(now, took)
		return
	}
	least, span := roundTime, watched
	if p.step == quick {
		least, span = quickTime, 0
	}
	done := took >= least && r.last-r.start >= span
	share := r.share()
	switch many := share > p.allowed(n); {
	case many && r.refused >= suspect && (done || p.glaring(r)):
		p.tooMany(now, took)
	case many && done && n >= several && r.refused >= suspect-1:
		p.tooMany(now, took)
	case !done || many && n < several:
		return // a few say nothing yet
	case r.refused > 0 && p.others == 0:
		p.test.on, p.search, p.step = false, false, fine
		// The rate is at the limit. Staying there would leave nothing to another client
		// of the same limit: the less that one sends, the more of it is refused.
		p.set(p.rate*(1-min(share, tolerated)/2), now)
		p.begin(now)
	default:
		p.clean(now, took)
	}
}

// glaring reports whether a round has so many refusals that it need not be waited for:
// more than three deviations beside those that are to be expected.
func (p *Pacer) glaring(r *round) bool {
	usual := p.others
	if p.test.on && p.test.share <= most {
		usual = max(usual, p.test.share)
	}
	n := float64(r.outcomes())
	excess := float64(r.refused) - usual*n - 3*math.Sqrt(n*usual*(1-usual))
	return excess >= enough || excess >= suspect && r.share() > most
}

// allowed returns the share of n outcomes that may be refusals without a word about
// the rate.
func (p *Pacer) allowed(n int) float64 {
	deviation := math.Sqrt(p.others * (1 - p.others) / float64(n))
	return min(p.others+max(tolerated, p.others/4)+2*deviation, most)
}

// judgeFree looks for the rate when nothing is known of it. The outcomes of all sends
// count: there is one rate, that of the callers.
func (p *Pacer) judgeFree(now, took time.Duration) {
	r := &p.round
	many := r.share() > tolerated
	switch {
	case many && r.refused >= enough && (r.good >= enough || took >= roundTime/2):
		p.tooMany(now, took)
	case many && r.refused >= suspect && took >= roundTime:
		p.tooMany(now, took)
	case took >= roundTime && (!many || took >= longest):
		p.begin(now)
	}
}
