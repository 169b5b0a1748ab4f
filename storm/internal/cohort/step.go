package cohort

import (
	"math"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// admit puts this step's arrivals before the service: outages and full queues
// refuse at once. All classes and lanes get the same share of the room, as they
// arrive mixed.
func (x *engine) admit(perSecond float64) {
	room := math.Inf(1)
	if x.v.Bound >= 0 {
		room = x.v.Bound
	}
	if x.v.Shed > 0 {
		room = min(room, x.v.Shed.Seconds()*perSecond)
	}
	// What is served within the step does not wait, and needs no room.
	room += perSecond*x.dt - x.q.total
	var offered float64
	for _, c := range x.classes {
		if c.lost != nil && x.cond.Cut >= c.cut {
			continue
		}
		for k := range c.lanes {
			n := max(c.lanes[k].now.n, 0)
			x.rec.Arrived(0, k > 0, n)
			offered += n * (1 - x.cond.Outage)
		}
	}
	in := 1.0
	if offered > 0 && x.v.Capacity > 0 {
		in = min(1, max(0, room)/offered) // all have the same chance
	}
	x.rec.Services[0].Shed += offered * (1 - in)
	for _, c := range x.classes {
		if c.lost != nil && x.cond.Cut >= c.cut {
			// The timeout shows that a sample is lost, as it does for the mass.
			c.samples = append(c.samples, c.arriving...)
			c.arriving = c.arriving[:0]
			continue
		}
		x.enter(c, in)
		for k := range c.lanes {
			now := c.lanes[k].now
			if now.n <= 0 {
				continue
			}
			admitted := (1 - x.cond.Outage) * in
			x.q.put(x.t, c.first+k, mass{now.n * admitted, now.start * admitted})
			x.failed(c, k, now.n*x.cond.Outage, now.start/now.n, byShed, float64(c.g.plan.RTT)/1e9)
			x.full(c, k, now.n*(1-x.cond.Outage)*(1-in), now.start/now.n)
		}
	}
	x.q.close(x.t)
}

// served ends the service of the given part of what arrived in step s. Some of it
// is in time and some is not; of what is, the errors of the faults take their part.
// What is late has failed already when its timeout was over, and is waste.
func (x *engine) served(s int, part, perSecond float64) {
	wait := float64(x.t-s) * x.dt
	service := x.v.Time.Seconds()
	if x.v.Capacity > 0 {
		service = float64(x.v.Concurrency) / perSecond
	}
	for _, c := range x.classes {
		// good is the share that a client still waits for.
		good := 1.0
		if x.v.Capacity > 0 {
			good = inTime(c.limit-service, wait, perSecond, x.dt)
			if x.v.DropExpired && c.dropped > 0 && x.t-s >= c.expire-2 {
				good = lastMoment(c.dropped, perSecond/float64(x.v.Concurrency))
			}
			x.edge = x.edge || good > 0.01 && good < 0.99
		}
		if x.t-s >= c.expire {
			good = 0
		}
		// A lane's part of the mass splits three ways: late, failed, good.
		p := x.errorRate(c)
		for k := range c.lanes {
			i := s*x.q.lanes + c.first + k
			n := x.q.n[i] * part
			if n == 0 {
				continue
			}
			x.rec.Services[0].Served += n
			if lost := n * (1 - good); lost > 0 {
				x.rec.Wasted(0, lost)
				if x.t-s < c.expire {
					x.failed(c, k, lost, x.q.start[i], byTimeout, c.limit-wait)
				}
			}
			if bad := n * good * p; bad > 0 {
				x.failed(c, k, bad, x.q.start[i], byError, service+float64(c.g.plan.RTT)/1e9)
			}
			if ok := n * good * (1 - p); ok > 0 {
				x.succeeded(c, ok, x.q.start[i], service)
			}
		}
	}
}

// errorRate returns the share of class c's responses that are errors now.
func (x *engine) errorRate(c *class) float64 {
	// Independent and load-coupled errors hit each attempt anew, one after the other.
	f := &x.cond.Failing
	if f[model.FailSticky] > 0 && c.luck <= f[model.FailSticky] {
		return 1
	}
	ok := 1 - f[model.FailIndependent]
	if f[model.FailLoad] > 0 {
		ok *= 1 - model.LoadFailure(f[model.FailLoad], x.m.Nominal[0], x.load.Rate())
	}
	return 1 - ok
}

// succeeded ends n calls of class c well, which were made at step start.
func (x *engine) succeeded(c *class, n, start, service float64) {
	latency := (float64(x.t)-start)*x.dt + service + float64(c.g.plan.RTT)/1e9
	x.rec.Finish(true, int64(latency*1e9), n)
	x.ended(c, n)
}

// ended lets the users of a closed loop, n of them, think again.
func (x *engine) ended(c *class, n float64) {
	if c.g.fleet.Users > 0 {
		c.g.idle += n
	}
}

// expired fails what class c sent one timeout ago and has not got back: what was
// lost on the way, and what is still in the queue. Its work stays there, unless the
// service drops it.
func (x *engine) expired(c *class, perSecond float64) {
	s := x.t - c.expire
	c.dropped = 0
	if s < 0 {
		return
	}
	if c.lost != nil {
		at := s % (c.expire + 1) * len(c.lanes)
		for k, m := range c.lost[at : at+len(c.lanes)] {
			if m.n > 0 {
				x.failed(c, k, m.n, m.start/m.n, byTimeout, 0)
			}
		}
	}
	left := x.q.left[s]
	if left <= 0 || x.q.all[s] <= 0 {
		return
	}
	// late is the share that is not served just in time.
	late := 1.0
	if x.v.DropExpired {
		c.dropped = x.q.arrived[s] / x.dt
	} else if perSecond > 0 {
		// What would be served a moment later is served in time by luck.
		wait := float64(c.expire)*x.dt + x.q.ahead(s, 5*math.Sqrt(c.limit*perSecond)+perSecond*x.dt)/perSecond
		late = 1 - inTime(c.limit, wait, perSecond, x.dt)
		x.edge = x.edge || late > 0.01 && late < 0.99
	}
	for k := range c.lanes {
		i := s*x.q.lanes + c.first + k
		n := x.q.n[i] * left
		if n == 0 {
			continue
		}
		x.failed(c, k, n*late, x.q.start[i], byTimeout, 0)
		if late < 1 {
			x.succeeded(c, n*(1-late), x.q.start[i], 0)
		}
		if x.v.DropExpired {
			x.q.all[s] -= x.q.n[i]
			x.q.total -= n
			x.q.n[i] = 0
			x.rec.Services[0].Shed += n
		}
	}
}
