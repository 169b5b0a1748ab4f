package exact

import (
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// The kinds of events.
const (
	evArrival = iota // of a fleet's next request; idx is the fleet
	evThink          // a user of a closed loop asks again; idx is the fleet
	evBurst          // idx is the fleet
	evTimeout        // idx is the call
	evRetry          // idx is the call
	evArrive         // a request reaches its service; idx is the task
	evDone           // a server is done; idx is the task
	evReply          // an answer reaches its caller; idx is the task
	evChange         // a fault begins or ends
	evBin            // the recorder closes a bin
)

// call is one logical call.
type call struct {
	start    int64
	deadline int64 // 0: none
	prevWait int64
	sent     int64 // the attempt under way
	parent   int32 // task that waits for it, or -1
	edge     int32
	instance int32
	gen      uint32 // of what is under way; everything older is stale
	luck     float32
	attempt  int16
	lastCost budget.Cost
	inner    bool
}

// task is one attempt, as its service sees it.
type task struct {
	at      int64 // when it reached the service
	call    int32
	callGen uint32
	service int32
	pending int32
	luck    float32
	retry   bool
	status  status
}

type status uint8

const (
	statusOK status = iota
	statusError
	statusShed // 503 from a full queue, shedding or an outage; with Retry-After
	statusBelow
)

// engine is the discrete-event engine.
type engine struct {
	m     *model.Model
	now   int64
	end   int64
	epoch time.Time
	w     *wheel

	arrivals, servers, draws, luck *rand.Rand
	draw                           func() float64

	fleets   []fleetState
	services []serviceState
	callers  [][]*model.Caller // by edge and instance
	calls    []call
	// kept goes with calls when any plan keeps something.
	kept     []kept
	keeps    bool
	tasks    []task
	freeCall []int32
	freeTask []int32

	rec    *model.Record
	events int64
}

// fleetState is the arrival process of one fleet.
type fleetState struct {
	gen    uint32
	factor float64
	at     int64 // next arrival
	next   int32 // instance that takes it
}

// Run plays all events of m out. A non-nil stop is asked now and then whether to
// break off.
func Run(m *model.Model, stop func() bool) (*model.Record, error) {
	x, err := newEngine(m)
	if err != nil {
		return nil, err
	}
	x.rec.Stopped = !x.run(stop)
	x.rec.Events = x.events
	return x.rec, nil
}

// newEngine returns an engine at time 0.
func newEngine(m *model.Model) (*engine, error) {
	x := &engine{m: m, end: int64(m.Duration), epoch: model.StartOfTime()}
	stream := func(i uint64) *rand.Rand { return rand.New(rand.NewPCG(m.Seed, i)) }
	x.arrivals, x.servers, x.draws, x.luck = stream(1), stream(2), stream(3), stream(4)
	x.draw = x.draws.Float64
	x.rec = model.NewRecord(m)
	for i := range m.Edges {
		e := &m.Edges[i]
		group := make([]*model.Caller, e.Instances)
		for j := range group {
			b, err := e.Plan.Caller(x.draw, 1, 1)
			if err != nil {
				return nil, err
			}
			group[j] = b
		}
		x.callers = append(x.callers, group)
		x.keeps = x.keeps || e.Plan.Keeps()
	}
	x.services = make([]serviceState, len(m.Services))
	for i := range x.services {
		x.services[i].init(&m.Services[i])
		x.services[i].cond = m.Condition(i, 0)
	}
	for _, f := range m.Faults {
		if f.Failing[model.FailLoad] > 0 {
			x.services[f.Service].loadFaults = true
		}
	}
	x.fleets = make([]fleetState, len(m.Fleets))
	attempts, _ := worst(m)
	x.w = newWheel(attempts * perAttempt)
	x.seed()
	return x, nil
}

// seed puts in what is known from the start.
func (x *engine) seed() {
	spike := x.m.Spike(0)
	for i := range x.m.Fleets {
		f := &x.m.Fleets[i]
		x.fleets[i].factor = spike
		switch {
		case f.Burst > 0:
			x.push(int64(f.BurstAt), evBurst, uint32(i), 0)
		case f.Users > 0:
			for range f.Users {
				x.push(x.thinkTime(f, spike), evThink, uint32(i), 0)
			}
		default:
			x.nextArrival(i)
		}
	}
	for _, t := range x.m.Boundaries() {
		x.push(t, evChange, 0, 0)
	}
	x.push(int64(x.m.Bin)-1, evBin, 0, 0) // before whatever happens on the boundary
}

func (x *engine) push(at int64, kind, idx, gen uint32) {
	x.w.push(event{at: at, idx: idx, gk: gen<<4 | kind})
}

func (x *engine) clock() time.Time { return x.epoch.Add(time.Duration(x.now)) }

// run executes all events of the run. It returns false when stop says so.
func (x *engine) run(stop func() bool) bool {
	for {
		e, ok := x.w.pop()
		if !ok || e.at >= x.end {
			break
		}
		x.now = e.at
		x.events++
		if x.events&0xffff == 0 && stop != nil && stop() {
			return false
		}
		switch e.kind() {
		case evArrival:
			x.onArrival(e)
		case evThink:
			x.begin(int(e.idx), x.nextInstance(int(e.idx)), -1, 0, false)
		case evBurst:
			for range x.m.Fleets[e.idx].Burst {
				x.begin(int(e.idx), x.nextInstance(int(e.idx)), -1, 0, false)
			}
		case evTimeout:
			x.onTimeout(e)
		case evRetry:
			if c := &x.calls[e.idx]; c.gen&genMask == e.gen() {
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
		}
	}
	x.now = x.end
	x.closeBin()
	return true
}

const genMask = 1<<28 - 1

// nextInstance hands the fleet's instances out in turn.
func (x *engine) nextInstance(fleet int) int32 {
	f := &x.fleets[fleet]
	i := f.next
	if f.next++; int(f.next) == x.m.Edges[fleet].Instances {
		f.next = 0
	}
	return i
}

// nextArrival schedules the fleet's next request, at its present rate.
func (x *engine) nextArrival(i int) {
	f, s := &x.m.Fleets[i], &x.fleets[i]
	s.gen++
	rate := f.Rate * s.factor
	if rate <= 0 {
		s.at = x.end
		return
	}
	gap := 1e9 / rate
	if !f.Regular {
		gap *= x.arrivals.ExpFloat64()
	}
	s.at = x.now + int64(gap+0.5)
	x.push(s.at, evArrival, uint32(i), s.gen&genMask)
}

func (x *engine) onArrival(e event) {
	i := int(e.idx)
	s := &x.fleets[i]
	if s.gen&genMask != e.gen() {
		return
	}
	x.begin(i, x.nextInstance(i), -1, 0, false)
	x.nextArrival(i)
}

func (x *engine) thinkTime(f *model.Fleet, factor float64) int64 {
	return x.now + int64(x.arrivals.ExpFloat64()*float64(f.Think)/max(factor, 1e-9))
}

// change applies the faults that begin or end now.
func (x *engine) change() {
	spike := x.m.Spike(x.now)
	for i := range x.fleets {
		s := &x.fleets[i]
		if s.factor != spike {
			s.factor = spike
			if x.m.Fleets[i].Rate > 0 {
				x.nextArrival(i) // the gaps of a Poisson process have no memory
			}
		}
	}
	for i := range x.services {
		v := &x.services[i]
		v.cond = x.m.Condition(i, x.now)
		x.kick(int32(i))
	}
}

// closeBin records what is a level and not a count.
func (x *engine) closeBin() {
	for i := range x.services {
		v := &x.services[i]
		x.rec.Queue(i, v.queueSeconds())
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
