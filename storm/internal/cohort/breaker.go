package cohort

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// fuses are the circuit breakers of a group: a few representative instances,
// each with a real Retryer whose breaker sees single sampled attempts, among the
// masses of all others, at the rate at which an instance of the fleet makes them.
// The share of them that is not closed is the share of the mass that is turned
// away.
type fuses struct {
	all    []*model.Caller
	unit   float64 // mass that one sampled attempt stands for
	saved  float64 // mass since the last one
	next   int
	closed float64 // share
}

// sample is one attempt under way, of one representative.
type sample struct {
	call *forbear.DurableCall
	step int
	u    float64 // its place in the mass of its step, 0 to 1
}

// none is the context of a simulation: no caller leaves before its deadline.
var none = context.Background()

const (
	mostFuses   = 16
	mostSamples = 1600 // a second, of all representatives of a group together
)

// newFuses returns the breakers of g, or nil when its policy has none. Their
// budgets are not asked: the group's is.
func (x *engine) newFuses(g *group, instances float64, rate float64) (*fuses, error) {
	if !g.plan.Breaker {
		return nil, nil
	}
	n := max(1, min(mostFuses, int(instances)))
	f := &fuses{closed: 1}
	p := *g.plan
	p.Baseline.NoBudget = true
	for range n {
		b, err := p.Caller(x.draw, 1, 1)
		if err != nil {
			return nil, err
		}
		f.all = append(f.all, b)
	}
	perSecond := min(rate/instances, mostSamples/float64(n)) * float64(n)
	f.unit = rate / max(perSecond, 1e-9)
	return f, nil
}

// offer samples the attempts that class c is about to make, and returns the
// share of them that the breakers let through.
func (x *engine) offer(c *class, n float64) float64 {
	f := c.g.fuses
	if f == nil {
		return 1
	}
	now := x.clock()
	for f.saved += n; f.saved >= f.unit; f.saved -= f.unit {
		fuse := f.all[f.next].Retryer
		s := sample{call: fuse.Durable(none, forbear.Progress{}), step: x.t, u: x.draw()}
		f.next = (f.next + 1) % len(f.all)
		if s.call.Ask(none, now).Retry {
			c.arriving = append(c.arriving, s)
		}
	}
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
// given part gets in.
func (x *engine) enter(c *class, in float64) {
	for i := range c.arriving {
		s := &c.arriving[i]
		if x.draw() < x.cond.Outage || x.draw() >= in {
			x.end(s, &x.shed)
			continue
		}
		c.samples = append(c.samples, *s)
	}
	c.arriving = c.arriving[:0]
}

// settle ends the samples of class c that have been served or have timed out.
// The queue is first in, first out, so they end in order.
func (x *engine) settle(c *class, perSecond float64) {
	for ; c.settled < len(c.samples); c.settled++ {
		s := &c.samples[c.settled]
		served := s.step < x.q.head || s.step < x.q.tail && x.q.left[s.step] <= 1-s.u
		late := x.t-s.step >= c.expire
		if !served && !late {
			break
		}
		wait := float64(x.t-s.step) * x.dt
		switch {
		case late || x.v.Capacity > 0 && x.draw() >= inTime(c.limit, wait, perSecond, x.dt):
			x.end(s, &model.FailedTimeout)
		case x.draw() < x.errorRate(c):
			x.end(s, &model.FailedResponse)
		default:
			service := time.Duration(wait*1e9) + x.v.Time
			s.call.Succeed(none, service, x.clock())
		}
	}
	if c.settled > len(c.samples)/2 {
		c.samples = append(c.samples[:0], c.samples[c.settled:]...)
		c.settled = 0
	}
}

// end fails a sample. What its Retryer decides is the group's business.
func (x *engine) end(s *sample, f *forbear.Failure) {
	s.call.Fail(none, *f, 0, x.clock())
}

// budgetRefused tells the breakers of g that the budget has refused retries.
func (x *engine) budgetRefused(g *group) {
	if g.fuses == nil {
		return
	}
	for _, b := range g.fuses.all {
		b.Retryer.Breaker().BudgetRefused(x.clock())
	}
}
