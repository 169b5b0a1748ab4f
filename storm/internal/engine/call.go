package engine

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// call is one logical call. There may be millions, so it is kept small; what
// only some plans need is in [kept].
type call struct {
	start int64
	// deadline is what the layer above has left of its time; 0 is none.
	deadline int64
	prevWait int64
	// sent is when the attempt under way was.
	sent int64
	// parent is the task that waits for the call, or -1 for a fleet's call.
	parent   int32
	edge     int32
	instance int32
	// gen is the generation of what is under way. It grows with every attempt,
	// response and timeout, and everything older is stale.
	gen uint32
	// luck decides on sticky errors, the same for every attempt.
	luck    float32
	attempt int16
	// lastCost is that of the last retry, for the budget that gets it back.
	lastCost budget.Cost
	// inner says that an attempt of a layer above is a retry already.
	inner bool
	// connected says that the attempt under way holds a connection of the pool, and
	// entered that the call holds a place in the bulkhead.
	connected, entered bool
}

// genMask is the part of a generation that fits into an [event].
const genMask = 1<<28 - 1

// begin starts a logical call of edge e. The parent task, if any, waits for it;
// what it has left of its time is the deadline.
func (x *engine) begin(e int, instance, parent int32, deadline int64, inner bool) {
	var i int32
	if n := len(x.freeCall); n > 0 {
		i, x.freeCall = x.freeCall[n-1], x.freeCall[:n-1]
	} else {
		i = int32(len(x.calls))
		x.calls = append(x.calls, call{})
		if x.keeps {
			x.kept = append(x.kept, kept{})
		}
	}
	c := &x.calls[i]
	// The generation goes on, so that events of the call that was here are stale.
	*c = call{
		start: x.now, deadline: deadline, parent: parent, edge: int32(e), instance: instance,
		gen: c.gen + 1, luck: x.luck.Float32(), attempt: 1, inner: inner,
	}
	if parent < 0 {
		x.rec.Now.Calls++
	}
	if x.keeps {
		x.keep(i)
	}
	x.first(i)
}

// first makes the first attempt of call i: past the breaker, counted by the
// budget, and past the throttle, which drops requests before they are sent.
func (x *engine) first(i int32) {
	c := &x.calls[i]
	b, now := x.caller(c), x.clock()
	if c.entered = b.Enter(now); !c.entered {
		x.notAdmitted(i, forbear.Decision{Reason: reason.BulkheadFull})
		return
	}
	if x.keeps {
		if d := x.admit(i); !d.Retry {
			x.notAdmitted(i, d)
			return
		}
		if x.kept[i].put && c.parent < 0 {
			x.rec.Now.Turned-- // only for a while
		}
	}
	b.Budget.Request(now) // first attempts are what a budget is a part of
	if b.Throttle != nil {
		p := b.Throttle.RejectProbability(now)
		b.Throttle.Request(now)
		if x.draw() < p {
			if c.parent < 0 {
				x.rec.Now.Turned++
				x.rec.Throttled++
			}
			x.withdraw(i)
			x.finish(i, statusError)
			return
		}
	}
	x.send(i)
}

// resume goes on with call i, whose wait is over.
func (x *engine) resume(i int32) {
	switch {
	case x.keeps && x.kept[i].call.Pending != nil:
		x.reconsider(i)
	case x.calls[i].attempt == 1:
		x.first(i)
	default:
		x.send(i)
	}
}

// send makes the next attempt of call i. A first attempt has asked the breaker
// already. A probe of a half-open breaker has half the time, so that a breaker
// does not wait long for its verdict.
func (x *engine) send(i int32) {
	c := &x.calls[i]
	e := &x.m.Edges[c.edge]
	c.gen++
	c.sent = x.now
	// The total is a hard limit; what is kept knows it.
	timeout := min(x.now+e.Plan.Timeout, c.start+int64(e.Plan.Policy.Total))
	if x.keeps {
		if c.attempt > 1 {
			if d := x.admit(i); !d.Retry {
				x.notAdmitted(i, d)
				return
			}
		}
		timeout = x.now + int64(x.kept[i].call.Timeout(x.clock()))
	}
	if c.parent < 0 && c.attempt > 1 {
		x.rec.Now.Retry++
	}
	if c.deadline > 0 {
		timeout = min(timeout, c.deadline)
	}
	// What would happen after the end need not be on the wheel.
	if timeout < x.end {
		x.push(timeout, evTimeout, uint32(i), c.gen&genMask)
	}
	t := x.newTask()
	x.tasks[t] = task{at: onItsWay, call: i, callGen: c.gen, service: int32(e.To), luck: c.luck, retry: c.attempt > 1}
	if x.connect(c, t) {
		x.transmit(t)
	}
}

// transmit sends task t on its way, to one of the replicas of its service.
func (x *engine) transmit(t int32) {
	k := &x.tasks[t]
	c := &x.calls[k.call]
	e := &x.m.Edges[c.edge]
	if n := x.m.Services[e.To].Replicas; n > 1 {
		k.service += int32(x.spread.IntN(n))
	}
	if x.isCut(c, k.service) {
		x.freeTask = append(x.freeTask, t)
		return // lost on the way: only the timeout will show it
	}
	if e.Plan.RTT > 0 {
		x.push(x.now+x.oneWay(e.Plan), evArrive, uint32(t), 0)
		return
	}
	x.arrive(t)
}

// isCut reports whether the caller of c is on the far side of a partition from the
// service. Calls of a single instance, which no share can divide, are split by luck.
func (x *engine) isCut(c *call, service int32) bool {
	cut := x.services[service].cond.Cut
	n := x.m.Edges[c.edge].Instances
	if n == 1 {
		return float64(c.luck) < cut
	}
	return float64(c.instance) < cut*float64(n)
}

// oneWay draws how long a message of p is on its way, in ns.
func (x *engine) oneWay(p *model.Plan) int64 {
	if p.RTTExponential {
		return int64(x.servers.ExpFloat64() * float64(p.RTT) / 2)
	}
	return p.RTT / 2
}

// deliver hands the response of task t to its call, if that still waits for it.
// Responses that come after the timeout are waste.
func (x *engine) deliver(t int32) {
	k := x.tasks[t]
	x.freeTask = append(x.freeTask, t)
	c := &x.calls[k.call]
	if c.gen != k.callGen {
		return
	}
	c.gen++
	x.disconnect(c)
	// The throttle counts what a backend has accepted, good or bad.
	if b := x.caller(c); b.Throttle != nil && k.status != statusShed {
		b.Throttle.Accepted(x.clock())
	}
	if k.status == statusOK {
		x.succeeded(k.call)
		x.finish(k.call, statusOK)
		return
	}
	x.failed(k.call, &x.failures[k.failure], k.status == statusBelow)
}

// onTimeout fails the attempt under way, if it is still the one that the event is
// about. Its task goes on.
func (x *engine) onTimeout(e event) {
	c := &x.calls[e.idx]
	if c.gen&genMask != e.gen() {
		return
	}
	c.gen++
	x.disconnect(c)
	x.failed(int32(e.idx), &model.FailedTimeout, false)
}

// failed asks the Retryer what follows failure f of call i. below says that a
// layer below has given up, on behalf of this one too.
func (x *engine) failed(i int32, f *forbear.Failure, below bool) {
	d := x.decide(i, f, below)
	p := x.m.Edges[x.calls[i].edge].Plan
	switch {
	case d.Retry:
		x.grant(i, d, p.Wait(&d, int(x.calls[i].attempt), x.draw))
	case p.Durable && d.Reason.Momentary(): // not now, and perhaps later
		x.putOff(i, d)
	default:
		x.refuse(i, d.Reason)
	}
}

// grant schedules the retry that d grants, whose wait may be a baseline's.
func (x *engine) grant(i int32, d forbear.Decision, wait time.Duration) {
	c := &x.calls[i]
	if x.keeps {
		x.kept[i].call.State.PrevWait = wait
	}
	c.attempt++
	c.prevWait = int64(wait)
	c.lastCost = d.Cost
	x.push(x.now+int64(wait), evRetry, uint32(i), c.gen&genMask)
}

// notAdmitted ends call i, which the breaker did not let through, or puts it
// off.
func (x *engine) notAdmitted(i int32, d forbear.Decision) {
	c := &x.calls[i]
	if x.m.Edges[c.edge].Plan.Durable && d.Reason.Momentary() {
		x.putOff(i, d)
		return
	}
	if c.attempt == 1 && c.parent < 0 {
		x.rec.Now.Turned++
	}
	x.refuse(i, d.Reason)
}

// refuse ends call i for the given reason.
func (x *engine) refuse(i int32, why forbear.Reason) {
	if x.calls[i].parent < 0 {
		x.rec.Refused[why]++
	}
	x.finish(i, verdictOf(why))
}

// verdictOf returns what the layer above gets to see of a call that ended for
// the given reason: what this layer has given up on behalf of all, or a plain
// failure. That is what a handler's own 500 is when the HTTP edge does not mark it, be
// it after a timeout or after a 404: a layer above may retry it.
func verdictOf(r forbear.Reason) status {
	if r.Binding() {
		return statusBelow
	}
	return statusError
}

// finish ends call i. A user of a closed loop thinks again; a task that waits for
// its calls below responds when the last of them ends, as badly as the worst.
func (x *engine) finish(i int32, s status) {
	c := x.calls[i]
	x.calls[i].gen++
	x.freeCall = append(x.freeCall, i)
	if c.entered {
		x.caller(&c).Leave()
	}
	if c.parent < 0 {
		x.rec.Finish(s == statusOK, c.start, x.now-c.start)
		if f := &x.m.Fleets[c.edge]; f.Users > 0 {
			x.push(x.thinkTime(f, x.fleets[c.edge].factor), evThink, uint32(c.edge), 0)
		}
		return
	}
	t := &x.tasks[c.parent]
	t.status = max(t.status, s)
	if t.pending--; t.pending == 0 {
		x.reply(c.parent, t.status, failed500)
	}
}
