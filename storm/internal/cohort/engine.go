package cohort

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// engine is the mean-field engine: in each time step it moves masses of
// requests, so its cost does not depend on their number. A lane is one attempt
// number of one class; a class is a part of a fleet whose calls all meet the
// same fate (sticky errors, partitions); a group is the part that shares a
// budget.
type engine struct {
	m     *model.Model
	dt    float64 // seconds
	steps int
	t     int
	epoch time.Time

	groups  []*group
	classes []*class
	lanes   int // of all classes together
	q       *queue
	v       *model.Service
	cond    model.Condition
	shed    forbear.Failure
	load    model.LoadMeter
	tenth   int // steps in a tenth of a second
	rec     *model.Record
	draw    func() float64
	// edge is set in a step in which the wait is about the timeout; edges counts
	// such steps in a row, and knife is the most of them.
	edge         bool
	edges, knife int
}

// group is what shares one Retryer. Each request that the Retryer sees stands
// for unit requests.
type group struct {
	fleet     *model.Fleet
	plan      *model.Plan
	caller    *model.Caller
	share     float64 // of the fleet
	instances int     // of the fleet
	unit      float64
	requested float64 // fresh mass that the budget has not seen yet
	idle      float64 // users of a closed loop that think
	fuses     *fuses
}

// class is a part of a group. Its calls have their luck in (luck[0], luck[1]]
// and their instances in the same way.
type class struct {
	g      *group
	share  float64 // of the group
	luck   float64 // the class is hit by a sticky fault of at least this rate
	cut    float64 // and by a partition of at least this share
	first  int     // its first lane
	lanes  []lane
	expire int     // steps until an attempt times out
	limit  float64 // seconds of queue and service that still are in time
	// dropped is the arrival rate of what expired and was dropped just now.
	dropped float64
	// admitted is the share of this step's attempts that the breakers let by.
	admitted float64
	// arriving and samples are the attempts that breakers get to see.
	arriving, samples []sample
	settled           int    // samples[:settled] have ended
	lost              []mass // ring by step and lane: sent, and lost on the way
}

// mass is a number of requests and the sum of their start times, in steps.
type mass struct{ n, start float64 }

// lane is one attempt number of a class.
type lane struct {
	ring    []mass // differences of the coming arrivals, by step
	due     mass   // sum of the differences so far
	now     mass   // arrivals of this step
	answers [failures]answer
}

// The ways in which an attempt fails, as far as a decision can tell.
const (
	byError = iota
	byShed
	byTimeout
	failures
)

// answer is what the Retryer said last about a kind of failure, and for how
// much mass that still holds.
type answer struct {
	left  float64
	retry bool
	why   forbear.Reason
	key   [2]time.Duration // floor and ceiling
	boxes []box
}

// box is a part of the mass that waits for between from and to steps.
type box struct {
	from, to int
	share    float64
}

// unitTime is how much of a fleet's load one request of its Retryer stands for,
// in seconds: a hundredth of a second is a three-thousandth of the window.
const unitTime = 0.01

// Run makes all steps of m, which must fit. A non-nil stop is asked now and then
// whether to break off.
func Run(m *model.Model, stop func() bool) (*model.Record, error) {
	x, err := newEngine(m)
	if err != nil {
		return nil, err
	}
	x.rec.Stopped = !x.run(stop)
	queues.Put(x.q)
	x.rec.Step, x.rec.Events = time.Duration(x.dt*1e9), int64(x.t)
	x.notes()
	return x.rec, nil
}

func newEngine(m *model.Model) (*engine, error) {
	x := &engine{m: m, epoch: model.StartOfTime(), v: &m.Services[0], rec: model.NewRecord(m)}
	x.dt = stepOf(m).Seconds()
	x.steps = int(math.Ceil(m.Duration.Seconds()/x.dt - 1e-9))
	x.shed = x.v.Refusal
	x.draw = rand.New(rand.NewPCG(m.Seed, 3)).Float64
	for i := range m.Fleets {
		if err := x.addFleet(i); err != nil {
			return nil, err
		}
	}
	x.q = newQueue(x.steps, x.lanes)
	x.tenth = max(1, int(math.Round(0.1/x.dt)))
	return x, nil
}

// stepOf returns the scenario's step, or a twentieth of its shortest timeout
// or backoff base, within 1 to 10 ms.
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

// addFleet makes the groups and classes of fleet i.
func (x *engine) addFleet(i int) error {
	f, e := &x.m.Fleets[i], &x.m.Edges[i]
	lucks, cuts := []float64{}, []float64{}
	for _, w := range x.m.Faults {
		switch {
		case w.Failing[model.FailSticky] > 0:
			lucks = append(lucks, w.Failing[model.FailSticky])
		case w.Cut > 0 && e.Instances == 1:
			lucks = append(lucks, w.Cut)
		case w.Cut > 0:
			cuts = append(cuts, math.Ceil(w.Cut*float64(e.Instances))/float64(e.Instances))
		}
	}
	low := 0.0
	for _, cut := range parts(cuts) {
		g := &group{fleet: f, plan: e.Plan, share: cut - low, instances: e.Instances}
		rate := f.Rate
		if f.Users > 0 {
			rate = float64(f.Users) / max(f.Think.Seconds(), x.dt)
			g.idle = float64(f.Users) * g.share
		}
		time := unitTime
		if e.Plan.Baseline.NoBudget && !e.Plan.Breaker {
			time *= 10 // nothing is counted: it is only to see the deadline come
		}
		g.unit = max(rate*g.share*time, float64(f.Burst)/1000, 1e-3)
		processes := float64(e.Instances) * g.share
		// The group's own Retryer has the budget; the breakers are apart.
		p := *e.Plan
		p.Given.Breaker.Disabled = true
		b, err := p.Caller(x.draw, processes, g.unit)
		if err != nil {
			return err
		}
		g.caller = b
		if g.fuses, err = x.newFuses(g, processes, max(rate*g.share, float64(f.Burst))); err != nil {
			return err
		}
		x.groups = append(x.groups, g)
		below := 0.0
		for _, luck := range parts(lucks) {
			c := &class{g: g, share: luck - below, luck: luck, cut: cut, first: x.lanes}
			if e.Instances == 1 {
				c.cut = luck
			}
			x.addLanes(c)
			below = luck
		}
		low = cut
	}
	return nil
}

// parts returns the sorted distinct cuts of (0, 1], the last being 1.
func parts(cuts []float64) []float64 {
	all := slices.DeleteFunc(append(cuts, 1), func(c float64) bool { return c <= 0 })
	slices.Sort(all)
	return slices.Compact(all)
}

func (x *engine) addLanes(c *class) {
	p := c.g.plan
	longest := p.Policy.Backoff.Cap + p.Policy.Backoff.Base + time.Duration(p.RTT) +
		x.shed.Hint.Floor + x.shed.Hint.Spread
	ring := min(int(longest.Seconds()/x.dt)+4, x.steps+2)
	c.lanes = make([]lane, p.Limit+1)
	for k := range c.lanes {
		if k > 0 {
			c.lanes[k].ring = make([]mass, ring)
		}
	}
	c.expire = max(1, int(math.Round(float64(p.Timeout)/1e9/x.dt)))
	c.limit = float64(p.Timeout-p.RTT) / 1e9
	for _, w := range x.m.Faults {
		if w.Cut > 0 && c.lost == nil {
			c.lost = make([]mass, (c.expire+1)*len(c.lanes))
		}
	}
	x.classes = append(x.classes, c)
	x.lanes += len(c.lanes)
}

func (x *engine) clock() time.Time {
	return x.epoch.Add(time.Duration(float64(x.t) * x.dt * 1e9))
}

// run makes all steps; it returns false when stop says so.
func (x *engine) run(stop func() bool) bool {
	perBin := x.m.Bin.Seconds() / x.dt
	nextBin := perBin
	for x.t = 0; x.t < x.steps; x.t++ {
		if x.t&1023 == 0 && stop != nil && stop() {
			return false
		}
		x.step()
		if float64(x.t+1) >= nextBin-1e-6 {
			x.closeBin()
			nextBin += perBin
		}
	}
	x.closeBin()
	return true
}

func (x *engine) step() {
	x.edges++
	if !x.edge {
		x.edges = 0
	}
	x.knife, x.edge = max(x.knife, x.edges), false
	now := int64(float64(x.t) * x.dt * 1e9)
	x.cond = x.m.Condition(0, now)
	factor := x.cond.Factor
	if x.v.QueueSlowdown > 0 {
		factor /= 1 + x.v.QueueSlowdown*x.q.total/x.v.Capacity
	}
	perSecond := x.v.Capacity * factor
	spike := x.m.Spike(now)
	for _, c := range x.classes {
		x.expired(c, perSecond)
	}
	for _, g := range x.groups {
		x.requests(g, spike)
	}
	var sum float64
	for _, c := range x.classes {
		sum += x.send(c)
	}
	if (x.t+1)%x.tenth == 0 {
		x.load.Advance()
	}
	x.load.Add(sum)
	x.admit(perSecond)
	switch {
	case x.v.Capacity == 0:
		x.q.serve(math.Inf(1), func(s int, part float64) { x.served(s, part, 1) })
	case perSecond > 0:
		x.q.serve(perSecond*x.dt, func(s int, part float64) { x.served(s, part, perSecond) })
	}
	for _, c := range x.classes {
		if len(c.samples) > 0 {
			x.settle(c, perSecond)
		}
	}
}

// requests makes the fresh mass of group g and tells its budget.
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
	for g.requested += n; g.requested >= g.unit; g.requested -= g.unit {
		g.caller.Budget.Request(x.clock())
	}
	for _, c := range x.classes {
		if c.g == g {
			c.lanes[0].now = mass{n * c.share, n * c.share * float64(x.t)}
		}
	}
}

// send takes the arrivals of this step out of the rings; what a partition
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

func (x *engine) closeBin() {
	if x.v.Capacity > 0 {
		x.rec.Queue(0, x.q.total/x.v.Capacity)
	}
	used, open := 0.0, 0.0
	now := x.clock()
	for _, g := range x.groups {
		used += min(g.caller.Retryer.Level(now).Utilization(), 1) * g.share
		if g.fuses != nil {
			open += (1 - g.fuses.closed) * g.share
		}
	}
	n := float64(len(x.m.Fleets))
	x.rec.CloseBin(used/n, open/n)
}
