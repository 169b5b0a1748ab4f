package storm

import (
	"math"

	"github.com/forbear-go/forbear"
)

// serviceState is a FIFO queue before a number of servers.
type serviceState struct {
	v     *Service
	cond  condition
	shed  forbear.Failure
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

func (v *serviceState) init(s *Service) {
	v.v, v.bound = s, -1
	v.shed = shedFailure(s)
	v.mean = float64(s.Time)
	if s.Capacity > 0 {
		v.mean = float64(s.Concurrency) / s.Capacity * 1e9
	}
	if n, ok := queueBound(s); ok {
		v.bound = int(n)
	}
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
	f := v.cond.factor
	if v.v.QueueSlowdown > 0 {
		f /= 1 + v.v.QueueSlowdown*v.queueSeconds()
	}
	return f
}

// free reports whether another request can be served at once.
func (v *serviceState) free() bool {
	return v.cond.factor > 0 && (v.v.Capacity == 0 || v.busy < v.v.Concurrency)
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
func (x *exact) arrive(t int32) {
	k := &x.tasks[t]
	k.at = x.now
	v := &x.services[k.service]
	x.rec.arrived(k.service, k.retry)
	if v.loadFaults {
		v.noteLoad(x.now)
	}
	if v.cond.outage > 0 && (v.cond.outage >= 1 || x.servers.Float64() < v.cond.outage) {
		x.reply(t, statusShed)
		return
	}
	if v.free() && v.length == 0 {
		x.serve(t)
		return
	}
	if v.bound >= 0 && v.length >= v.bound || v.v.Shed > 0 && v.expected() > v.v.Shed.Seconds() {
		x.rec.shed(k.service)
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
func (x *exact) serve(t int32) {
	k := &x.tasks[t]
	v := &x.services[k.service]
	v.busy++
	d := v.mean / v.factor()
	switch v.v.Law {
	case "exponential":
		d *= x.servers.ExpFloat64()
	case "lognormal":
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
func (x *exact) kick(i int32) {
	v := &x.services[i]
	for v.length > 0 && v.free() {
		t := v.dequeue()
		k := &x.tasks[t]
		if v.v.DropExpired && x.calls[k.call].gen != k.callGen {
			x.freeTask = append(x.freeTask, t)
			x.rec.shed(i)
			continue
		}
		x.serve(t)
	}
}

// done ends the service of task t: it answers, or calls the layer below.
func (x *exact) done(t int32) {
	k := &x.tasks[t]
	i := k.service
	v := &x.services[i]
	v.busy--
	stale := x.calls[k.call].gen != k.callGen
	x.rec.served(i, stale)
	if v.length > 0 {
		x.kick(i)
		k = &x.tasks[t]
	}
	if x.fails(v, k) {
		x.reply(t, statusError)
		return
	}
	if len(x.m.out[i]) == 0 {
		x.reply(t, statusOK)
		return
	}
	x.below(t, i)
}

// fails draws the errors of the faults that hold now.
func (x *exact) fails(v *serviceState, k *task) bool {
	f := &v.cond.failing
	if p := f[failSticky]; p > 0 && float64(k.luck) < p {
		return true
	}
	if p := f[failIndependent]; p > 0 && x.servers.Float64() < p {
		return true
	}
	if p := f[failLoad]; p > 0 {
		p = loadFailure(p, x.m.nominal[k.service], v.loadNow)
		return x.servers.Float64() < p
	}
	return false
}

// loadFailure returns the share of requests that fail when only (1 - rate) of
// the nominal load can be served and load is offered.
func loadFailure(rate, nominal, load float64) float64 {
	if load <= 0 {
		return rate
	}
	return max(0, 1-(1-rate)*nominal/max(load, nominal))
}

// below starts the calls of task t to the next layer.
func (x *exact) below(t, service int32) {
	k := x.tasks[t]
	c := &x.calls[k.call]
	var deadline int64
	if x.m.s.Services[service].DropExpired {
		if c.gen != k.callGen {
			x.freeTask = append(x.freeTask, t)
			return
		}
		deadline = k.at + x.m.edges[c.edge].plan.timeout
		if c.deadline > 0 {
			deadline = min(deadline, c.deadline)
		}
	}
	n := int32(0)
	for _, e := range x.m.out[service] {
		n += int32(x.m.edges[e].fan)
	}
	// One more, so that calls that end at once do not answer too early.
	x.tasks[t].pending = n + 1
	inner := k.retry || c.inner && c.gen == k.callGen
	for _, e := range x.m.out[service] {
		g := &x.m.edges[e]
		for range g.fan {
			x.begin(e, int32(int(k.call)%g.instances), t, deadline, inner)
		}
	}
	if r := &x.tasks[t]; r.pending == 1 {
		x.reply(t, r.status)
	} else {
		r.pending--
	}
}
