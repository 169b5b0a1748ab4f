package cohort

import (
	"math"
	"slices"
	"time"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// unitTime is how much of a fleet's load one request of its Retryer stands for,
// in seconds: a hundredth of a second is a three-thousandth of the budget's usual
// window, so that what the unit rounds off does not show.
const unitTime = 0.01

// addFleet makes the groups and classes of fleet i. Each partition divides the
// instances, and with them the budgets; each sticky fault divides the calls.
func (x *engine) addFleet(i int) {
	f, e := &x.m.Fleets[i], &x.m.Edges[i]
	lucks, cuts := divisions(x.m.Faults, e.Instances)
	low := 0.0
	for _, cut := range cuts {
		g := x.newGroup(f, e, cut-low)
		below := 0.0
		for _, luck := range lucks {
			c := &class{g: g, share: luck - below, luck: luck, cut: cut, first: x.lanes}
			if e.Instances == 1 {
				c.cut = luck
			}
			x.addLanes(c)
			below = luck
		}
		low = cut
	}
}

// divisions returns where the faults divide the calls of so many instances by
// luck, and where they divide the instances. A partition cuts whole instances off;
// the calls of a single one are divided by luck, as the exact engine does.
func divisions(faults []model.Fault, instances int) (lucks, cuts []float64) {
	n := float64(instances)
	for _, w := range faults {
		switch {
		case w.Failing[model.FailSticky] > 0:
			lucks = append(lucks, w.Failing[model.FailSticky])
		case w.Cut > 0 && instances == 1:
			lucks = append(lucks, w.Cut)
		case w.Cut > 0:
			cuts = append(cuts, math.Ceil(w.Cut*n)/n)
		}
	}
	return parts(lucks), parts(cuts)
}

// newGroup returns the given share of fleet f, with the budget of as many
// instances and breakers of its own.
func (x *engine) newGroup(f *model.Fleet, e *model.Edge, share float64) *group {
	g := &group{fleet: f, plan: e.Plan, share: share, instances: e.Instances}
	rate := f.Rate
	if f.Users > 0 {
		rate = float64(f.Users) / max(f.Think.Seconds(), x.dt)
		g.idle = float64(f.Users) * share
	}
	time := unitTime
	if e.Plan.Baseline.NoBudget && !e.Plan.Breaker {
		time *= 10 // nothing is counted: it is only to see the deadline come
	}
	// No unit is so small that a quiet fleet asks for fractions of a request.
	g.unit = max(rate*share*time, float64(f.Burst)/1000, 1e-3)
	processes := float64(e.Instances) * share
	// The group's own Retryer has the budget; the breakers are apart.
	p := *e.Plan
	p.Given.Breaker.Disabled = true
	g.caller = p.Caller(x.draw, processes, g.unit)
	if p.Breaker {
		g.breakers = x.newBreakers(e.Plan, processes, max(rate*share, float64(f.Burst)))
	}
	x.groups = append(x.groups, g)
	return g
}

// parts returns the sorted distinct cuts of (0, 1], the last being 1.
func parts(cuts []float64) []float64 {
	all := slices.DeleteFunc(append(slices.Clone(cuts), 1), func(c float64) bool { return c <= 0 })
	slices.Sort(all)
	return slices.Compact(all)
}

// addLanes makes the lanes of class c. A ring is as long as the longest wait that
// a failure can bring, or the rest of the run.
func (x *engine) addLanes(c *class) {
	p := c.g.plan
	longest := p.Policy.Backoff.Cap + p.Policy.Backoff.Base + time.Duration(p.RTT) +
		x.v.Refusal.Hint.Floor + x.v.Refusal.Hint.Spread
	ring := min(int(longest.Seconds()/x.dt)+4, x.steps+2)
	c.lanes = make([]lane, p.Limit+1)
	for k := 1; k < len(c.lanes); k++ {
		c.lanes[k].ring = make([]mass, ring)
	}
	c.expire = max(1, int(math.Round(float64(p.Timeout)/1e9/x.dt)))
	c.limit = float64(p.Timeout-p.RTT) / 1e9
	if slices.ContainsFunc(x.m.Faults, func(w model.Fault) bool { return w.Cut > 0 }) {
		c.lost = make([]mass, (c.expire+1)*len(c.lanes))
	}
	x.classes = append(x.classes, c)
	x.lanes += len(c.lanes)
}

// stepOf returns the scenario's step, or a twentieth of the shortest time that
// matters (timeout, backoff base, queue), within 1 to 10 ms.
func stepOf(m *model.Model) time.Duration {
	if m.Step > 0 {
		return m.Step
	}
	shortest := 200 * time.Millisecond
	for i := range m.Edges {
		p := m.Edges[i].Plan
		shortest = min(shortest, time.Duration(p.Timeout))
		if p.Limit > 0 {
			shortest = min(shortest, p.Policy.Backoff.Base)
		}
	}
	if q := m.Services[0].Bound; q > 0 {
		shortest = min(shortest, time.Duration(q/m.Services[0].Capacity*1e9))
	}
	return max(time.Millisecond, min(shortest/20, 10*time.Millisecond, m.Bin))
}
