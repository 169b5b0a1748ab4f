package cohort

import "math"

// requests makes the fresh mass of group g, and counts it with its budget. Of the
// users of a closed loop, those who think leave their thinking at a constant rate.
func (x *engine) requests(g *group, spike float64) {
	var n float64
	switch f := g.fleet; {
	case f.Users > 0:
		n = g.idle * -math.Expm1(-x.dt/max(f.Think.Seconds(), 1e-9)*spike)
		g.idle -= n
	case f.Burst > 0:
		if x.t == int(f.BurstAt.Seconds()/x.dt) {
			n = float64(f.Burst) * g.share
		}
	default:
		n = f.Rate * g.share * spike * x.dt
	}
	x.rec.Now.Calls += n
	// Whole units are counted; the rest of one waits for the next step.
	for g.requested += n; g.requested >= g.unit; g.requested -= g.unit {
		g.caller.Budget.Request(x.clock())
	}
	for _, c := range x.classes {
		if c.g == g {
			c.lanes[0].now = mass{n * c.share, n * c.share * float64(x.t)}
		}
	}
}

// send takes the arrivals of this step out of the rings and returns what of them
// goes to the service. Breakers turn their share away first; what a partition
// swallows is put aside until it times out.
func (x *engine) send(c *class) (sum float64) {
	offered := c.lanes[0].now.n
	for k := 1; k < len(c.lanes); k++ {
		l := &c.lanes[k]
		d := &l.ring[x.t%len(l.ring)]
		l.due.n += d.n
		l.due.start += d.start
		*d = mass{}
		l.now = l.due
		offered += max(l.now.n, 0)
	}
	// The breakers see samples of all attempt numbers alike.
	c.admitted = x.offer(c, offered)
	for k := range c.lanes {
		l := &c.lanes[k]
		if k > 0 {
			if l.now.n < 1e-9*c.g.unit {
				// The rest of a sum of differences.
				l.now = mass{}
				continue
			}
			x.rec.Now.Retry += l.now.n * c.admitted
		}
		if open := 1 - c.admitted; open > 0 {
			x.turnedAway(c, k, open)
		}
		if c.lost != nil {
			slot := &c.lost[x.t%(c.expire+1)*len(c.lanes)+k]
			*slot = mass{}
			if x.cond.Cut >= c.cut {
				*slot = l.now
				continue
			}
		}
		sum += l.now.n
	}
	return sum
}
