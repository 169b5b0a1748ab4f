package engine

import (
	"math"

	"github.com/forbear-go/forbear/storm/internal/model"
)

// task is one attempt, as its service sees it. It outlives the attempt: a service
// does not know that a client has given up, and works on.
type task struct {
	// at is when it reached the service, or onItsWay or responded.
	at   int64
	call int32
	// callGen is the call's generation when the attempt was sent: when the call
	// has another by now, its client no longer waits for this one.
	callGen uint32
	service int32
	// pending are the calls to the layers below that have not ended.
	pending int32
	luck    float32
	// failure is what it comes back with, by index, unless its status is good.
	failure uint16
	retry   bool
	status  status
}

// The times of a task that is not in its service: at 32 bytes it has no room for more.
const (
	onItsWay  = -1 // to the service
	responded = -2 // its client has a response, but its server may work on
)

// status is how a task ends, from good to bad: of several calls below, the worst
// counts.
type status uint8

const (
	statusOK    status = iota
	statusError        // a failure that the caller may retry
	statusShed         // not accepted: a full queue, shedding, a limit or an outage
	statusBelow        // a layer below has given up
)

// serviceState is a FIFO queue before a number of servers.
type serviceState struct {
	v *model.Service
	// cond is what the faults make of it now, and hits what they do to single requests.
	cond model.Fault
	hits []model.Hit
	// failures is the index of its first failure in the engine's.
	failures uint16
	tokens   model.Tokens
	// bound is that of the queue; negative is none.
	bound int
	// mean is the service time in ns, with all of the capacity.
	mean float64
	// mu and sigma are those of the lognormal whose mean is 1.
	mu, sigma float64

	fifo // of the tasks that wait
	// busy are the requests in service.
	busy int

	// load is measured up to the given tenth of a second, and only where a fault of
	// the scenario is coupled to it.
	load       model.LoadMeter
	tenth      int64
	loadFaults bool
}

// init makes v an idle service. The lognormal has a mean of 1 and the service's
// coefficient of variation.
func (v *serviceState) init(s *model.Service) {
	v.v = s
	v.mean = float64(s.Time)
	if s.Capacity > 0 {
		v.mean = float64(s.Concurrency) / s.Capacity * 1e9
	}
	v.bound = int(s.Bound)
	v.sigma = math.Sqrt(math.Log(1 + s.CV*s.CV))
	v.mu = -v.sigma * v.sigma / 2
	v.tokens = s.Limit.Tokens()
}

// queueSeconds returns how long the queue would take at nominal capacity; without
// one there is no queue.
func (v *serviceState) queueSeconds() float64 {
	if v.v.Capacity == 0 {
		return 0
	}
	return float64(v.length) / v.v.Capacity
}

// factor returns the part of the capacity that is there: what the faults leave, less
// what a long queue costs.
func (v *serviceState) factor() float64 {
	f := v.cond.Factor
	if v.v.QueueSlowdown > 0 {
		f /= 1 + v.v.QueueSlowdown*v.queueSeconds()
	}
	return f
}

// free reports whether another request can be served at once. Without a capacity
// there are as many servers as requests.
func (v *serviceState) free() bool {
	return v.cond.Factor > 0 && (v.v.Capacity == 0 || v.busy < v.v.Concurrency)
}

// addLoad counts an arrival for load-coupled errors.
func (v *serviceState) addLoad(now int64) {
	for tenth := now / 1e8; v.tenth < tenth; v.tenth++ {
		v.load.Advance()
	}
	v.load.Add(1)
}

// newTask returns a task that nothing uses, which the caller fills in.
func (x *engine) newTask() int32 {
	if n := len(x.freeTask); n > 0 {
		t := x.freeTask[n-1]
		x.freeTask = x.freeTask[:n-1]
		return t
	}
	x.tasks = append(x.tasks, task{})
	return int32(len(x.tasks) - 1)
}

// arrive puts task t before its service: an outage, the limit and a full queue respond
// at once.
func (x *engine) arrive(t int32) {
	k := &x.tasks[t]
	k.at = x.now
	v := &x.services[k.service]
	x.rec.Arrived(k.service, k.retry)
	if v.loadFaults {
		v.addLoad(x.now)
	}
	if h := x.struck(v, k, model.HitOutage); h != nil {
		x.reply(t, statusShed, x.failureOf(h, v.failures+refused))
		return
	}
	if l := &v.v.Limit; l.Rate > 0 && !l.Take(&v.tokens, x.now) {
		x.rec.Services[k.service].Shed++
		x.reply(t, statusShed, v.failures+limited)
		return
	}
	if v.free() && v.length == 0 {
		x.watch(t, v)
		x.serve(t)
		return
	}
	if v.bound >= 0 && v.length >= v.bound || v.v.Shed > 0 && v.expected() > v.v.Shed.Seconds() {
		x.rec.Services[k.service].Shed++
		x.reply(t, statusShed, v.failures+refused)
		return
	}
	x.watch(t, v)
	v.enqueue(t)
}

// expected returns the wait of a request that comes now, in seconds, at the present
// capacity. That is what a service that sheds load can know.
func (v *serviceState) expected() float64 {
	return v.queueSeconds() / max(v.factor(), 1e-9)
}

// serve gives task t a server. What the faults take of the capacity makes each
// service longer and leaves the number of servers. A service that takes no time
// ends before serve returns.
func (x *engine) serve(t int32) {
	k := &x.tasks[t]
	v := &x.services[k.service]
	v.busy++
	// A service that has begun keeps its speed when a fault begins or ends.
	d := v.mean / v.factor()
	switch v.v.Law {
	case model.Exponential:
		d *= x.servers.ExpFloat64()
	case model.Quantiles:
		d = v.v.Measured.At(x.servers.NormFloat64()) / v.factor()
	case model.Lognormal:
		d *= math.Exp(v.mu + v.sigma*x.servers.NormFloat64())
	}
	if h := x.struck(v, k, model.HitSlow); h != nil {
		d = float64(x.m.Faults[h.Fault].SlowTime) / v.factor()
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

// kick lets idle servers of service i take from the queue. With deadline
// propagation, what no client waits for is thrown away on the way.
func (x *engine) kick(i int32) {
	v := &x.services[i]
	for v.length > 0 && v.free() {
		t := v.dequeue()
		k := &x.tasks[t]
		if v.v.DropExpired && x.abandoned(k) {
			x.freeTask = append(x.freeTask, t)
			x.rec.Services[i].Shed++
			continue
		}
		x.serve(t)
	}
}

// done ends the service of task t: it responds, or calls the layer below. The
// server is free for the next task before anything else happens; a kick may move
// the tasks, so that k is looked up anew.
func (x *engine) done(t int32) {
	k := &x.tasks[t]
	i := k.service
	v := &x.services[i]
	v.busy--
	x.rec.Services[i].Served++
	if x.abandoned(k) {
		x.rec.Wasted(i)
	}
	if v.length > 0 {
		x.kick(i)
		k = &x.tasks[t]
	}
	if h := x.fails(v, k); h != nil {
		x.reply(t, statusError, x.failureOf(h, failed500))
		return
	}
	if len(x.m.Out[i]) == 0 {
		x.reply(t, statusOK, failed500)
		return
	}
	x.below(t, i)
}

// abandoned reports whether no client waits for k: it has given up, or has its response.
func (x *engine) abandoned(k *task) bool {
	return k.at == responded || x.calls[k.call].gen != k.callGen
}

// reply sends the response of task t to its caller, with that failure unless s is good.
// One that the server's timeout has responded for is over.
func (x *engine) reply(t int32, s status, failure uint16) {
	k := &x.tasks[t]
	if k.at == responded {
		x.freeTask = append(x.freeTask, t)
		return
	}
	k.at, k.failure = responded, failure
	x.respond(t, s)
}

// respond sends task t back to its caller.
func (x *engine) respond(t int32, s status) {
	k := &x.tasks[t]
	k.status = s
	if p := x.m.Edges[x.calls[k.call].edge].Plan; p.RTT > 0 {
		x.push(x.now+x.oneWay(p), evReply, uint32(t), 0)
		return
	}
	x.deliver(t)
}

// below starts the calls of task t to the next layer. A service that propagates
// deadlines passes on what is left of its client's time, and starts nothing for a
// client that has given up.
func (x *engine) below(t, service int32) {
	k := x.tasks[t]
	c := &x.calls[k.call]
	var deadline int64
	if x.m.Services[service].DropExpired {
		if x.abandoned(&k) {
			x.freeTask = append(x.freeTask, t)
			return
		}
		deadline = k.at + x.m.Edges[c.edge].Plan.Timeout
		if own := x.m.Services[service].Timeout; own > 0 {
			deadline = min(deadline, k.at+int64(own))
		}
		if c.deadline > 0 {
			deadline = min(deadline, c.deadline)
		}
	}
	// One more than has begun, so that calls that end at once do not respond too early.
	// Beginning a call may end it, and may move the tasks: the task is looked up by its
	// index each time.
	x.tasks[t].pending = 1
	// Below a retry, or below what is itself below one, there is one attempt. A
	// call that has gone on without this task is no longer what it was.
	inner := k.retry || c.inner && c.gen == k.callGen
	for _, e := range x.m.Out[service] {
		g := &x.m.Edges[e]
		for range g.FanOut {
			x.tasks[t].pending++
			x.begin(e, int32(x.anyOf(e)), t, deadline, inner)
		}
	}
	if r := &x.tasks[t]; r.pending == 1 {
		x.reply(t, r.status, failed500)
	} else {
		r.pending--
	}
}
