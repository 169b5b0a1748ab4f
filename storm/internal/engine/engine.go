package engine

import (
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// The kinds of events. There is room for 16 in an [event].
const (
	evArrival = iota // of a fleet's next request; idx is the fleet
	evThink          // a user of a closed loop begins anew; idx is the fleet
	evBurst          // idx is the fleet
	evTimeout        // idx is the call
	evRetry          // idx is the call
	evArrive         // a request reaches its service; idx is the task
	evDone           // a server is done; idx is the task
	evReply          // a response reaches its caller; idx is the task
	evChange         // a fault begins or ends
	evBin            // a bin of the record ends
	evConnect        // a connection is free for an attempt; idx is the task
	evLoad           // the next step of a fleet's load; idx is the fleet
	evLapse          // a service's own timeout; idx is the task
)

// engine is one run. It belongs to one goroutine.
type engine struct {
	m     *model.Model
	now   int64
	end   int64
	epoch time.Time
	w     *wheel

	// One stream of random numbers for each purpose; see the package comment.
	arrivals, servers, draws, luck, spread *rand.Rand

	draw func() float64 // of draws, for the Retryers

	fleets   []fleetState
	services []serviceState
	// callers are by edge and instance.
	callers [][]*model.Caller
	calls   []call
	// kept goes with calls when any plan keeps something.
	kept  []kept
	keeps bool
	// passing is a call that is not kept, for one decision.
	passing  edge.DurableCall
	tasks    []task
	failures failures
	// freeCall and freeTask are what has ended, to be used again.
	freeCall, freeTask []int32

	// pools are by edge and instance, nil where connections are not bounded.
	pools [][]pool

	rec *model.Record
}

// Run plays all events of m out. A non-nil stop is asked now and then whether to
// break off; what has happened until then is returned.
func Run(m *model.Model, stop func() bool) *model.Record {
	x := newEngine(m)
	x.rec.Stopped = !x.run(stop)
	return x.rec
}

// newEngine returns an engine at time 0, with everything on the wheel that is
// known from the start.
func newEngine(m *model.Model) *engine {
	x := &engine{m: m, end: int64(m.Duration), epoch: model.StartOfTime(), rec: model.NewRecord(m)}
	stream := func(i uint64) *rand.Rand { return rand.New(rand.NewPCG(m.Seed, i)) }
	x.arrivals, x.servers, x.draws, x.luck, x.spread = stream(1), stream(2), stream(3), stream(4), stream(5)
	x.draw = x.draws.Float64
	for i := range m.Edges {
		e := &m.Edges[i]
		group := make([]*model.Caller, e.Instances)
		for j := range group {
			group[j] = e.Plan.Caller(x.draw)
		}
		x.callers = append(x.callers, group)
		x.pools = append(x.pools, newPools(e))
		x.keeps = x.keeps || e.Plan.Keeps()
	}
	x.failures = failuresOf(m)
	x.services = make([]serviceState, len(m.Services))
	for i := range x.services {
		x.services[i].init(&m.Services[i])
		x.services[i].failures = uint16(1 + perService*i)
		x.setFaults(i)
	}
	for _, f := range m.Faults {
		for i := range x.services {
			x.services[i].loadFaults = x.services[i].loadFaults || f.Failing[model.FailLoad] > 0 && f.Hits(i)
		}
	}
	x.fleets = make([]fleetState, len(m.Fleets))
	// As many slots as there are events when all goes wrong; in quiet times some
	// stay empty, which costs less than full ones.
	attempts, _ := worst(m, (*model.Fleet).Peak)
	x.w = newWheel(attempts * perAttempt(m))
	x.seed()
	return x
}

// push puts an event on the wheel. gen is 0 for events that nothing makes stale.
func (x *engine) push(at int64, kind, idx, gen uint32) {
	x.w.push(event{at: at, idx: idx, gk: gen<<4 | kind})
}

// clock returns the time as budgets and breakers see it.
func (x *engine) clock() time.Time { return x.epoch.Add(time.Duration(x.now)) }

// run executes all events of the run. It returns false when stop says so, which
// it asks every 65,536 events: often enough for a user, too rarely to cost time.
func (x *engine) run(stop func() bool) bool {
	for {
		e, ok := x.w.pop()
		if !ok || e.at >= x.end {
			break
		}
		x.now = e.at
		x.rec.Events++
		if x.rec.Events&0xffff == 0 && stop != nil && stop() {
			return false
		}
		x.handle(e)
	}
	x.now = x.end
	x.closeBin()
	return true
}

// handle executes one event. Those of calls carry the generation that they were
// meant for, and do nothing when the call has gone on without them.
func (x *engine) handle(e event) {
	switch e.kind() {
	case evArrival:
		x.onArrival(e)
	case evThink:
		x.request(int(e.idx))
	case evBurst:
		for range x.m.Fleets[e.idx].Burst {
			x.request(int(e.idx))
		}
	case evTimeout:
		x.onTimeout(e)
	case evRetry:
		if x.calls[e.idx].gen&genMask == e.gen() {
			x.resume(int32(e.idx))
		}
	case evArrive:
		x.arrive(int32(e.idx))
	case evDone:
		x.done(int32(e.idx))
	case evReply:
		x.deliver(int32(e.idx))
	case evChange:
		x.change()
	case evBin:
		x.closeBin()
	case evConnect:
		x.onConnected(int32(e.idx))
	case evLoad:
		x.onLoad(int(e.idx))
	case evLapse:
		x.onLapse(int32(e.idx))
	}
}

// change applies the faults that begin or end now.
func (x *engine) change() {
	spike := x.m.Spike(x.now)
	for i := range x.fleets {
		s := &x.fleets[i]
		switch {
		case s.factor == spike:
		case x.m.Fleets[i].Open():
			x.retime(i, s.rate, spike)
		default:
			s.factor = spike
		}
	}
	for i := range x.services {
		x.setFaults(i)
		x.kick(int32(i)) // a pause may have ended
	}
}

// setFaults applies the faults that hold now to service i.
func (x *engine) setFaults(i int) {
	v := &x.services[i]
	v.cond = x.m.Condition(i, x.now)
	v.hits = x.m.Hits(i, x.now, v.hits[:0])
}

// closeBin records what is a level and not a count. Of a large fleet it looks at
// about sixteen instances: a bin ends up to 20,000 times in a run.
func (x *engine) closeBin() {
	for i := range x.services {
		x.rec.Queue(i, x.services[i].queueSeconds())
	}
	used, open, n := 0.0, 0.0, 0
	now := x.clock()
	for _, group := range x.callers[:len(x.m.Fleets)] {
		for j := 0; j < len(group); j += 1 + len(group)/16 {
			used += min(group[j].Retryer.Level(now).Utilization(), 1)
			if b := group[j].Retryer.Breaker(); b != nil && b.State() != breaker.Closed {
				open++
			}
			n++
		}
	}
	x.rec.CloseBin(used/float64(max(n, 1)), open/float64(max(n, 1)))
	x.push(x.now+int64(x.m.Bin), evBin, 0, 0)
}
