package cohort

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// breakers are the circuit breakers of a group: a few representative instances,
// each with a real Retryer whose breaker sees single sampled attempts, among the
// masses of all others, at the rate at which an instance of the fleet makes them.
// The share of them that is not closed is the share of the mass that is turned
// away. A breaker counts attempts, and opens at a number of them: no mass could
// stand for that.
type breakers struct {
	all []*model.Caller
	// unit is the mass that one sampled attempt stands for, and saved the mass
	// since the last one.
	unit, saved float64
	// next is the instance that makes the next sampled attempt.
	next int
	// closed is the share of the instances whose breaker is closed.
	closed float64
}

// sample is one attempt under way, of one representative. It fails for its breaker to
// count: what its Retryer decides does not matter, as the group's decides for the mass.
type sample struct {
	call *forbear.DurableCall
	step int
	// u is its place in the mass of its step, from 0 (served first) to 1.
	u float64
}

// none is the context of a simulation: no caller leaves before its deadline.
var none = context.Background()

// What one group samples at most. The masses cost nothing for each request; samples
// do.
const (
	mostBreakers = 16
	mostSamples  = 1600 // a second, of all representatives of a group together
)

// newBreakers returns the breakers of so many instances with the given rate. Their
// budgets are not asked: the group's is.
func (x *engine) newBreakers(p *model.Plan, instances, rate float64) *breakers {
	n := max(1, min(mostBreakers, int(instances)))
	perSecond := min(rate/instances, mostSamples/float64(n)) * float64(n)
	f := &breakers{closed: 1, unit: rate / max(perSecond, 1e-9)}
	unlimited := *p
	unlimited.Baseline.NoBudget = true
	for range n {
		f.all = append(f.all, unlimited.Caller(x.draw, 1, 1))
	}
	return f
}

// offer samples the n attempts that class c is about to make, and returns the
// share of them that the breakers let through. A sample that a half-open breaker
// admits is its probe.
func (x *engine) offer(c *class, n float64) float64 {
	f := c.g.breakers
	if f == nil {
		return 1
	}
	now := x.clock()
	for f.saved += n; f.saved >= f.unit; f.saved -= f.unit {
		s := sample{call: f.all[f.next].Retryer.Durable(none, forbear.Progress{}), step: x.t, u: x.draw()}
		f.next = (f.next + 1) % len(f.all)
		if s.call.Ask(none, now).Retry {
			c.arriving = append(c.arriving, s)
		}
	}
	// A half-open breaker lets probes through, not the mass.
	closed := 0
	for _, b := range f.all {
		if b.Retryer.Breaker().State() == breaker.Closed {
			closed++
		}
	}
	f.closed = float64(closed) / float64(len(f.all))
	return f.closed
}

// enter puts the sampled arrivals of class c before the service, of which the
// given part gets in. An outage and a full queue refuse each of them by chance, as
// they refuse their share of the mass.
func (x *engine) enter(c *class, in float64) {
	for i := range c.arriving {
		s := &c.arriving[i]
		if x.draw() < x.cond.Outage || x.draw() >= in {
			s.call.Fail(none, x.v.Refusal, 0, x.clock())
			continue
		}
		c.samples = append(c.samples, *s)
	}
	c.arriving = c.arriving[:0]
}

// concludeSamples ends the samples of class c that have been served or have timed
// out. The queue is first in, first out, so they end in order. What has ended is
// cut off when it is the greater part, so that the slice does not grow.
func (x *engine) concludeSamples(c *class, perSecond float64) {
	for ; c.concluded < len(c.samples); c.concluded++ {
		s := &c.samples[c.concluded]
		served := s.step < x.q.head || s.step < x.q.tail && x.q.left[s.step] <= 1-s.u
		late := x.t-s.step >= c.expire
		if !served && !late {
			break
		}
		wait := float64(x.t-s.step) * x.dt
		switch {
		case late || x.v.Capacity > 0 && x.draw() >= inTime(c.limit, wait, perSecond, x.dt):
			s.call.Fail(none, model.FailedTimeout, 0, x.clock())
		case x.draw() < x.errorRate(c):
			s.call.Fail(none, model.FailedResponse, 0, x.clock())
		default:
			service := time.Duration(wait*1e9) + x.v.Time
			s.call.Succeed(none, service, x.clock())
		}
	}
	if c.concluded > len(c.samples)/2 {
		c.samples = append(c.samples[:0], c.samples[c.concluded:]...)
		c.concluded = 0
	}
}

// budgetRefused lets the breakers of g count that the budget has refused retries:
// a policy may have them open for that.
func (x *engine) budgetRefused(g *group) {
	if g.breakers == nil {
		return
	}
	for _, b := range g.breakers.all {
		b.Retryer.Breaker().BudgetRefused(x.clock())
	}
}
