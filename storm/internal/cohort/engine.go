package cohort

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// engine is one run. A fleet is made of groups, which share a budget; a group of
// classes, whose calls have the same luck; a class of lanes, one for each attempt
// number. An engine belongs to one goroutine.
type engine struct {
	m     *model.Model
	dt    float64 // length of a step, in seconds
	steps int
	t     int // the step that is being made
	epoch time.Time

	groups  []*group
	classes []*class
	// lanes are those of all classes together: the width of the queue.
	lanes int
	q     *queue
	v     *model.Service
	cond  model.Condition
	load  model.LoadMeter
	// tenth is the number of steps in a tenth of a second.
	tenth int
	rec   *model.Record
	draw  func() float64
	// edge is set in a step in which the wait is about the timeout: there the
	// result hangs on how single waits spread. edges counts such steps in a row,
	// and knife is the most of them.
	edge         bool
	edges, knife int
}

// Run makes all steps of m, which must fit. A non-nil stop is asked now and then
// whether to break off.
func Run(m *model.Model, stop func() bool) *model.Record {
	x := newEngine(m)
	x.rec.Stopped = !x.run(stop)
	queues.Put(x.q)
	x.rec.Step, x.rec.Events = time.Duration(x.dt*1e9), int64(x.t)
	x.notes()
	return x.rec
}

// newEngine returns an engine before its first step. Random numbers serve only to
// sample attempts for the breakers and to draw for Retryers: the masses leave
// nothing to chance.
func newEngine(m *model.Model) *engine {
	x := &engine{m: m, epoch: model.StartOfTime(), v: &m.Services[0], rec: model.NewRecord(m)}
	x.dt = stepOf(m).Seconds()
	x.steps = int(math.Ceil(m.Duration.Seconds()/x.dt - 1e-9))
	x.draw = rand.New(rand.NewPCG(m.Seed, 3)).Float64
	for i := range m.Fleets {
		x.addFleet(i)
	}
	x.q = newQueue(x.steps, x.lanes)
	x.tenth = max(1, int(math.Round(0.1/x.dt)))
	return x
}

// clock returns the time as budgets and breakers see it.
func (x *engine) clock() time.Time {
	return x.epoch.Add(time.Duration(float64(x.t) * x.dt * 1e9))
}

// run makes all steps; it returns false when stop says so, which it asks every
// 1,024 steps. A bin need not be a whole number of steps.
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

// step moves everything by one step, in the order in which it happens to a
// request: what has timed out fails, fleets and waits make new attempts, the queue
// admits or refuses them, and the servers take from its head.
func (x *engine) step() {
	x.edges++
	if !x.edge {
		x.edges = 0
	}
	x.knife, x.edge = max(x.knife, x.edges), false
	now := int64(float64(x.t) * x.dt * 1e9)
	x.cond = x.m.Condition(0, now)
	// perSecond is what the servers can do now.
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
	// A service without a capacity takes everything; one that pauses takes nothing.
	switch {
	case x.v.Capacity == 0:
		x.q.serve(math.Inf(1), func(s int, part float64) { x.served(s, part, 1) })
	case perSecond > 0:
		x.q.serve(perSecond*x.dt, func(s int, part float64) { x.served(s, part, perSecond) })
	}
	for _, c := range x.classes {
		if len(c.samples) > 0 {
			x.concludeSamples(c, perSecond)
		}
	}
}

// closeBin records what is a level and not a count.
func (x *engine) closeBin() {
	if x.v.Capacity > 0 {
		x.rec.Queue(0, x.q.total/x.v.Capacity)
	}
	used, open := 0.0, 0.0
	now := x.clock()
	for _, g := range x.groups {
		used += min(g.caller.Retryer.Level(now).Utilization(), 1) * g.share
		if g.breakers != nil {
			open += (1 - g.breakers.closed) * g.share
		}
	}
	n := float64(len(x.m.Fleets))
	x.rec.CloseBin(used/n, open/n)
}
