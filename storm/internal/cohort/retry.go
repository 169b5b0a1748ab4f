package cohort

import (
	"math"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// turnedAway ends the given share of lane k's attempts at the breakers. First
// attempts that are not made count as turned away, retries as refused.
func (x *engine) turnedAway(c *class, k int, share float64) {
	l := &c.lanes[k]
	n := l.now.n * share
	l.now.n -= n
	l.now.start *= 1 - share
	if k == 0 {
		x.rec.Now.Turned += n
	}
	x.refuse(c, forbear.ReasonBreakerOpen, n)
}

// refuse ends n calls for the given reason.
func (x *engine) refuse(c *class, why forbear.Reason, n float64) {
	x.rec.Refuse(why, n)
	x.rec.Finish(false, 0, n)
	x.ended(c, n)
}

// full turns n requests away from a full queue. A retry without any wait finds
// it as full as it was: a later step would be kinder than the truth.
func (x *engine) full(c *class, k int, n, start float64) {
	p := c.g.plan
	for p.Baseline.Wait == "none" && p.RTT == 0 && x.v.Refusal.Hint.Floor == 0 && k < p.Limit && n > 0 {
		again := x.granted(c, k, n, start, byShed)
		n -= again
		x.failed(c, k, n, start, byShed, 0) // what is left was refused
		x.rec.Now.Retry += again
		x.rec.Arrived(0, true, again)
		x.rec.Services[0].Shed += again
		k, n = k+1, again
	}
	x.failed(c, k, n, start, byShed, float64(p.RTT)/1e9)
}

// granted returns how much of n may be retried, and takes it out of the rulings,
// asking for new ones as they are used up.
func (x *engine) granted(c *class, k int, n, start float64, kind int) (sum float64) {
	a := &c.lanes[k].rulings[kind]
	for n-sum > 1e-12*c.g.unit {
		if a.left <= 0 {
			x.ask(c, k, start, kind)
		}
		if !a.retry {
			return sum
		}
		part := min(n-sum, a.left)
		sum += part
		if a.left -= part; a.left < 1e-9*c.g.unit {
			a.left = 0
		}
	}
	return n
}

// failed asks what follows for n failures of attempt k+1, and puts the retries
// into the ring of the next lane. The caller learns of it after so many seconds.
// A refusal of the budget holds for all that is left of the step: it is spent.
func (x *engine) failed(c *class, k int, n, start float64, kind int, after float64) {
	a := &c.lanes[k].rulings[kind]
	// What the instances behind open breakers leave of their budgets is not
	// there for the others: each request of those counts for more.
	weight := 1.0
	if f := c.g.breakers; f != nil && f.closed < 1 && k+1 < len(c.lanes) {
		// An open breaker ends the sequences that are under way.
		x.refuse(c, forbear.ReasonBreakerOpen, n*(1-f.closed))
		n *= f.closed
		weight = 1 / max(f.closed, 1e-6)
	}
	for n > 1e-12*c.g.unit {
		if a.left <= 0 {
			x.ask(c, k, start, kind)
		}
		part := min(n, a.left/weight)
		if a.why == forbear.ReasonBudget {
			part = n // until the next step
			a.left = 0
		}
		n -= part
		a.left -= part * weight
		if a.left < 1e-9*c.g.unit {
			a.left = 0
		}
		if !a.retry {
			x.refuse(c, a.why, part)
			continue
		}
		x.schedule(&c.lanes[k+1], a.boxes, part, start, int(math.Round(after/x.dt)))
	}
}

// ask puts one failure, which stands for a unit, to the Retryer. Boxes are kept
// while floor and ceiling stay what they were: sampling them is most of the cost of
// a decision.
func (x *engine) ask(c *class, k int, start float64, kind int) {
	a := &c.lanes[k].rulings[kind]
	f := [failures]forbear.Failure{byError: model.FailedResponse, byShed: x.v.Refusal, byTimeout: model.FailedTimeout}[kind]
	s := forbear.State{Attempt: k + 1, Start: x.epoch.Add(time.Duration(start * x.dt * 1e9))}
	before := s // as the decision saw it, for sampling it again
	d := c.g.caller.Retryer.Next(&s, f, x.clock())
	a.left, a.retry, a.why = c.g.unit, d.Retry, d.Reason
	if d.Reason == forbear.ReasonBudget {
		x.budgetRefused(c.g)
	}
	if !d.Retry {
		return
	}
	key := [2]time.Duration{d.Floor, d.Ceiling}
	tolerance := time.Duration(x.dt * 1e9)
	if a.boxes == nil || (a.key[0]-key[0]).Abs() > tolerance || (a.key[1]-key[1]).Abs() > tolerance {
		a.key = key
		a.boxes = x.boxes(c.g.plan, k, before, f)
	}
}

// boxes samples the waits that the policy draws and cuts them into parts of
// equal mass. The samples are quantiles of the first draw, with a second number
// beside it for what draws twice; a uniform law comes down to a single box.
func (x *engine) boxes(p *model.Plan, k int, s forbear.State, f forbear.Failure) []box {
	const samples = 256
	now := x.clock()
	waits := make([]float64, 0, samples)
	for i := range samples {
		u := [2]float64{(float64(i) + 0.5) / samples, radical(i)}
		j := 0
		draw := func() float64 { j++; return u[min(j, 2)-1] }
		d := forbear.Decide(&p.Policy, s, f, now, draw)
		j = 0
		waits = append(waits, p.Wait(&d, k+1, draw).Seconds()/x.dt)
	}
	slices.Sort(waits)
	// edge is halfway between two samples, and half a gap beyond the outermost.
	edge := func(i int) float64 {
		switch i {
		case 0:
			return waits[0] - (waits[1]-waits[0])/2
		case samples:
			return waits[samples-1] + (waits[samples-1]-waits[samples-2])/2
		}
		return (waits[i-1] + waits[i]) / 2
	}
	parts := 16 // follow the waits of any policy or baseline closely enough
	if even(waits) {
		parts = 1
	}
	all := make([]box, parts)
	for i := range all {
		from := int(math.Round(edge(i * samples / parts)))
		to := max(int(math.Round(edge((i+1)*samples/parts))), from+1)
		all[i] = box{from, to, 1 / float64(parts)}
	}
	return all
}

// even reports whether the sorted waits, in steps, are those of a uniform law:
// none is a quarter of a step or more away from its place.
func even(waits []float64) bool {
	n := float64(len(waits) - 1)
	for i, w := range waits {
		if math.Abs(w-waits[0]-(waits[len(waits)-1]-waits[0])*float64(i)/n) > 0.25 {
			return false
		}
	}
	return true
}

// radical returns the i-th number of the van der Corput sequence in base 2, which
// fills (0, 1) evenly whatever its length.
func radical(i int) float64 {
	v, scale := 0.0, 0.5
	for ; i > 0; i >>= 1 {
		v += float64(i&1) * scale
		scale /= 2
	}
	return v
}

// schedule adds n, spread over the boxes, to the coming arrivals of l. Waits count
// from the step in which the caller learns of the failure.
func (x *engine) schedule(l *lane, boxes []box, n, start float64, after int) {
	size := len(l.ring)
	for _, b := range boxes {
		from := x.t + 1 + max(after, 0) + b.from
		to := x.t + 1 + max(after, 0) + b.to
		if from > x.t+size-2 {
			continue // beyond the end of the run
		}
		rate := n * b.share / float64(b.to-b.from)
		to = min(to, x.t+size-1)
		l.ring[from%size].n += rate
		l.ring[from%size].start += rate * start
		l.ring[to%size].n -= rate
		l.ring[to%size].start -= rate * start
	}
}
