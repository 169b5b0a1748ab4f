package exact

import (
	"math"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// serviceState is a FIFO queue before a number of servers.
type serviceState struct {
	v     *model.Service
	cond  model.Condition
	bound int // of the queue; -1: none
	mean  float64
	mu    float64 // of the lognormal
	sigma float64

	queue    []int32 // ring of tasks
	head     int
	length   int
	busy     int // requests in service
	loadBins [11]float64
	loadBin  int64
	loadNow  float64
	// loadFaults says that a fault of the scenario is coupled to the load.
	loadFaults bool
}

func (v *serviceState) init(s *model.Service) {
	v.v = s
	v.mean = float64(s.Time)
	if s.Capacity > 0 {
		v.mean = float64(s.Concurrency) / s.Capacity * 1e9
	}
	v.bound = int(s.Bound)
	v.sigma = math.Sqrt(math.Log(1 + s.CV*s.CV))
	v.mu = -v.sigma * v.sigma / 2
	v.queue = make([]int32, 64)
}

// queueSeconds returns how long the queue would take at nominal capacity.
func (v *serviceState) queueSeconds() float64 {
	if v.v.Capacity == 0 {
		return 0
	}
	return float64(v.length) / v.v.Capacity
}

func (v *serviceState) enqueue(t int32) {
	if v.length == len(v.queue) {
		bigger := make([]int32, 2*len(v.queue))
		n := copy(bigger, v.queue[v.head:])
		copy(bigger[n:], v.queue[:v.head])
		v.queue, v.head = bigger, 0
	}
	v.queue[(v.head+v.length)&(len(v.queue)-1)] = t
	v.length++
}

func (v *serviceState) dequeue() int32 {
	t := v.queue[v.head]
	v.head = (v.head + 1) & (len(v.queue) - 1)
	v.length--
	return t
}

// factor returns the part of the capacity that is there.
func (v *serviceState) factor() float64 {
	f := v.cond.Factor
	if v.v.QueueSlowdown > 0 {
		f /= 1 + v.v.QueueSlowdown*v.queueSeconds()
	}
	return f
}

// free reports whether another request can be served at once.
func (v *serviceState) free() bool {
	return v.cond.Factor > 0 && (v.v.Capacity == 0 || v.busy < v.v.Concurrency)
}

// noteLoad counts an arrival, for load-coupled errors: loadNow is the rate of
// the last second, in ten finished bins.
func (v *serviceState) noteLoad(now int64) {
	const width = 1e8
	for bin := now / width; v.loadBin < bin; {
		i := v.loadBin % int64(len(v.loadBins))
		v.loadNow += v.loadBins[i]
		v.loadBin++
		i = v.loadBin % int64(len(v.loadBins))
		v.loadNow -= v.loadBins[i]
		v.loadBins[i] = 0
	}
	v.loadBins[v.loadBin%int64(len(v.loadBins))]++
}

// arrive puts task t before its service.
func (x *engine) arrive(t int32) {
	k := &x.tasks[t]
	k.at = x.now
	v := &x.services[k.service]
	x.rec.Arrived(k.service, k.retry)
	if v.loadFaults {
		v.noteLoad(x.now)
	}
	if v.cond.Outage > 0 && (v.cond.Outage >= 1 || x.servers.Float64() < v.cond.Outage) {
		x.reply(t, statusShed)
		return
	}
	if v.free() && v.length == 0 {
		x.serve(t)
		return
	}
	if v.bound >= 0 && v.length >= v.bound || v.v.Shed > 0 && v.expected() > v.v.Shed.Seconds() {
		x.rec.Services[k.service].Shed++
		x.reply(t, statusShed)
		return
	}
	v.enqueue(t)
}

// expected returns the wait of a request that comes now, in seconds.
func (v *serviceState) expected() float64 {
	return v.queueSeconds() / max(v.factor(), 1e-9)
}

// serve gives task t a server.
func (x *engine) serve(t int32) {
	k := &x.tasks[t]
	v := &x.services[k.service]
	v.busy++
	d := v.mean / v.factor()
	switch v.v.Law {
	case model.Exponential:
		d *= x.servers.ExpFloat64()
	case model.Lognormal:
		d *= math.Exp(v.mu + v.sigma*x.servers.NormFloat64())
	}
	if v.v.PerConcurrent > 0 {
		d += float64(v.v.PerConcurrent) * float64(v.busy)
	}
	if d <= 0 {
		x.done(t)
		return
	}
	x.push(x.now+int64(d+0.5), evDone, uint32(t), 0)
}

// kick lets idle servers of service i take from the queue.
func (x *engine) kick(i int32) {
	v := &x.services[i]
	for v.length > 0 && v.free() {
		t := v.dequeue()
		k := &x.tasks[t]
		if v.v.DropExpired && x.calls[k.call].gen != k.callGen {
			x.freeTask = append(x.freeTask, t)
			x.rec.Services[i].Shed++
			continue
		}
		x.serve(t)
	}
}

// done ends the service of task t: it answers, or calls the layer below.
func (x *engine) done(t int32) {
	k := &x.tasks[t]
	i := k.service
	v := &x.services[i]
	v.busy--
	stale := x.calls[k.call].gen != k.callGen
	x.rec.Served(i, stale)
	if v.length > 0 {
		x.kick(i)
		k = &x.tasks[t]
	}
	if x.fails(v, k) {
		x.reply(t, statusError)
		return
	}
	if len(x.m.Out[i]) == 0 {
		x.reply(t, statusOK)
		return
	}
	x.below(t, i)
}

// fails draws the errors of the faults that hold now.
func (x *engine) fails(v *serviceState, k *task) bool {
	f := &v.cond.Failing
	if p := f[model.FailSticky]; p > 0 && float64(k.luck) < p {
		return true
	}
	if p := f[model.FailIndependent]; p > 0 && x.servers.Float64() < p {
		return true
	}
	if p := f[model.FailLoad]; p > 0 {
		p = model.LoadFailure(p, x.m.Nominal[k.service], v.loadNow)
		return x.servers.Float64() < p
	}
	return false
}

// below starts the calls of task t to the next layer.
func (x *engine) below(t, service int32) {
	k := x.tasks[t]
	c := &x.calls[k.call]
	var deadline int64
	if x.m.Services[service].DropExpired {
		if c.gen != k.callGen {
			x.freeTask = append(x.freeTask, t)
			return
		}
		deadline = k.at + x.m.Edges[c.edge].Plan.Timeout
		if c.deadline > 0 {
			deadline = min(deadline, c.deadline)
		}
	}
	n := int32(0)
	for _, e := range x.m.Out[service] {
		n += int32(x.m.Edges[e].FanOut)
	}
	// One more, so that calls that end at once do not answer too early.
	x.tasks[t].pending = n + 1
	inner := k.retry || c.inner && c.gen == k.callGen
	for _, e := range x.m.Out[service] {
		g := &x.m.Edges[e]
		for range g.FanOut {
			x.begin(e, int32(int(k.call)%g.Instances), t, deadline, inner)
		}
	}
	if r := &x.tasks[t]; r.pending == 1 {
		x.reply(t, r.status)
	} else {
		r.pending--
	}
}
