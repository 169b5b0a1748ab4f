package storm

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/spread"
)

// The failures that attempts come back with.
var (
	failedAnswer  = forbear.Failure{Class: forbear.ClassTransient, Type: "http_500"}
	failedShed    = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}
	failedTimeout = forbear.Failure{Class: forbear.ClassTimeout, Type: forbear.TypeTimeout}
)

// shedFailure returns a 503 with the service's Retry-After: a floor and a spread,
// as the HTTP edge makes of it.
func shedFailure(v *Service) forbear.Failure {
	f := failedShed
	if v.RetryAfter > 0 {
		f.Hint.Floor = v.RetryAfter.D()
		f.Hint.Spread = spread.Over(v.RetryAfter.D(), spread.Share)
	}
	return f
}

// begin starts a logical call of edge e.
func (x *exact) begin(e int, instance, parent int32, deadline int64, inner bool) {
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
	*c = call{
		start: x.now, deadline: deadline, parent: parent, edge: int32(e), instance: instance,
		gen: c.gen + 1, luck: x.luck.Float32(), attempt: 1, inner: inner,
	}
	if parent < 0 {
		x.rec.begun()
	}
	if x.keeps {
		x.kept[i] = kept{state: x.stateOf(c)}
	}
	x.first(i)
}

// first makes the first attempt of call i.
func (x *exact) first(i int32) {
	c := &x.calls[i]
	b := x.callers[c.edge][c.instance]
	now := x.clock()
	if x.keeps {
		k := &x.kept[i]
		if why := b.r.Admit(&k.state, now); why != forbear.ReasonNone {
			x.notAdmitted(i, why)
			return
		}
		if k.put && c.parent < 0 {
			x.rec.turnedAway(-1) // only for a while
		}
	}
	b.budget.Request(now)
	if b.adaptive != nil {
		p := b.adaptive.RejectProbability(now)
		b.adaptive.Request(now)
		if x.draw() < p {
			if c.parent < 0 {
				x.rec.turnedAway(1)
			}
			if x.keeps {
				b.r.Withdraw(&x.kept[i].state)
			}
			x.finish(i, statusError)
			return
		}
	}
	x.send(i)
}

// send makes the next attempt of call i.
func (x *exact) send(i int32) {
	c := &x.calls[i]
	e := &x.m.edges[c.edge]
	c.gen++
	c.sent = x.now
	timeout := x.now + e.plan.timeout
	if x.keeps {
		if c.attempt > 1 {
			if why := x.callers[c.edge][c.instance].r.Admit(&x.kept[i].state, x.clock()); why != forbear.ReasonNone {
				x.notAdmitted(i, why)
				return
			}
		}
		if x.kept[i].state.Probe() {
			timeout = x.now + e.plan.timeout/2
		}
	}
	if c.parent < 0 {
		x.rec.attempted(c.attempt > 1)
	}
	if c.deadline > 0 {
		timeout = min(timeout, c.deadline)
	}
	if timeout < x.end {
		x.push(timeout, evTimeout, uint32(i), c.gen&genMask)
	}
	if cut := x.services[e.to].cond.cut; cut > 0 && float64(c.instance) < cut*float64(e.instances) && x.isCut(c, cut, e) {
		return // lost on the way: only the timeout will tell
	}
	t := x.newTask()
	x.tasks[t] = task{call: i, callGen: c.gen, service: int32(e.to), luck: c.luck, retry: c.attempt > 1}
	if e.plan.rtt > 0 {
		x.push(x.now+x.oneWay(e.plan), evArrive, uint32(t), 0)
		return
	}
	x.arrive(t)
}

// isCut reports whether the caller of c is on the far side of a partition. With
// fewer instances than the share can tell apart, its calls are split by luck.
func (x *exact) isCut(c *call, cut float64, e *edge) bool {
	if e.instances == 1 {
		return float64(c.luck) < cut
	}
	return true
}

func (x *exact) newTask() int32 {
	if n := len(x.freeTask); n > 0 {
		t := x.freeTask[n-1]
		x.freeTask = x.freeTask[:n-1]
		return t
	}
	x.tasks = append(x.tasks, task{})
	return int32(len(x.tasks) - 1)
}

func (x *exact) oneWay(p *plan) int64 {
	if p.given.RTTLaw == "exponential" {
		return int64(x.servers.ExpFloat64() * float64(p.rtt) / 2)
	}
	return p.rtt / 2
}

// reply sends the answer of task t to its caller.
func (x *exact) reply(t int32, s status) {
	k := &x.tasks[t]
	k.status = s
	if p := x.m.edges[x.calls[k.call].edge].plan; p.rtt > 0 {
		x.push(x.now+x.oneWay(p), evReply, uint32(t), 0)
		return
	}
	x.deliver(t)
}

// deliver hands an answer to the call, if it still waits for it.
func (x *exact) deliver(t int32) {
	k := x.tasks[t]
	x.freeTask = append(x.freeTask, t)
	c := &x.calls[k.call]
	if c.gen != k.callGen {
		return
	}
	c.gen++
	b := x.callers[c.edge][c.instance]
	if b.adaptive != nil && k.status != statusShed {
		b.adaptive.Accepted(x.clock())
	}
	switch k.status {
	case statusOK:
		b.succeeded(x.clock(), int(c.attempt)-1, c.lastCost)
		if x.keeps {
			b.r.Succeeded(&x.kept[k.call].state, time.Duration(x.now-c.sent), x.clock())
		}
		x.finish(k.call, statusOK)
	case statusShed:
		x.failed(k.call, &x.services[k.service].shed, false)
	case statusBelow:
		x.failed(k.call, &failedAnswer, true)
	default:
		x.failed(k.call, &failedAnswer, false)
	}
}

func (x *exact) onTimeout(e event) {
	c := &x.calls[e.idx]
	if c.gen&genMask != e.gen() {
		return
	}
	c.gen++
	x.failed(int32(e.idx), &failedTimeout, false)
}

// failed asks the Retryer what follows.
func (x *exact) failed(i int32, f *forbear.Failure, below bool) {
	c := &x.calls[i]
	p := x.m.edges[c.edge].plan
	s := x.stateOf(c)
	if x.keeps {
		s = x.kept[i].state
	}
	if !p.given.Baseline.Oblivious {
		s.ExhaustedBelow, s.Inner = below, c.inner
	}
	d := x.callers[c.edge][c.instance].r.Next(&s, *f, x.clock())
	switch {
	case d.Retry:
		x.granted(i, &s, d, p.wait(&d, int(c.attempt), x.draw))
	case p.durable && d.Reason.Momentary():
		k := &x.kept[i]
		k.state, k.pending, k.failedAt = s, f, x.now
		x.putOff(i, d.Reason)
	default:
		if c.parent < 0 {
			x.rec.refused(d.Reason, 1)
		}
		x.finish(i, verdictOf(d.Reason))
	}
}

// granted schedules the retry that d grants, whose wait may be a baseline's.
func (x *exact) granted(i int32, s *forbear.State, d forbear.Decision, wait time.Duration) {
	c := &x.calls[i]
	if x.keeps {
		s.PrevWait = wait
		x.kept[i].state = *s
	}
	c.attempt++
	c.prevWait = int64(wait)
	c.lastCost = d.Cost
	x.push(x.now+int64(wait), evRetry, uint32(i), c.gen&genMask)
}

// stateOf returns c as the Retryer wants to see it.
func (x *exact) stateOf(c *call) forbear.State {
	s := forbear.State{
		Attempt:  int(c.attempt),
		Start:    x.epoch.Add(time.Duration(c.start)),
		PrevWait: time.Duration(c.prevWait),
	}
	if c.deadline > 0 {
		s.Deadline = x.epoch.Add(time.Duration(c.deadline))
	}
	return s
}

// unmade gives the budget back what a retry took that the breaker stopped.
func (x *exact) unmade(i int32) {
	c := &x.calls[i]
	x.callers[c.edge][c.instance].r.Refund(forbear.Decision{Retry: true, Cost: c.lastCost}, x.clock())
}

// notAdmitted ends call i, which the breaker did not let through, or puts it
// off.
func (x *exact) notAdmitted(i int32, why forbear.Reason) {
	c := &x.calls[i]
	if x.m.edges[c.edge].plan.durable {
		x.putOff(i, why)
		return
	}
	if c.attempt > 1 {
		x.unmade(i)
	}
	if c.parent < 0 {
		x.rec.refused(why, 1)
		if c.attempt == 1 {
			x.rec.turnedAway(1)
		}
	}
	x.finish(i, verdictOf(why))
}

// verdictOf returns what the layer above gets to see of a call that ended for
// the given reason: what this layer has given up on behalf of all, or a plain
// failure of one that leaves the retrying to others.
func verdictOf(r forbear.Reason) status {
	switch r {
	case forbear.ReasonDisabled, forbear.ReasonInner, forbear.ReasonDeadline:
		return statusError
	}
	return statusBelow
}

// finish ends call i and tells whoever waits for it.
func (x *exact) finish(i int32, s status) {
	c := x.calls[i]
	x.calls[i].gen++
	x.freeCall = append(x.freeCall, i)
	if c.parent < 0 {
		x.rec.finished(s == statusOK, x.now-c.start, 1)
		if f := &x.m.s.Fleets[c.edge]; f.Users > 0 {
			x.push(x.thinkTime(f, x.fleets[c.edge].factor), evThink, uint32(c.edge), 0)
		}
		return
	}
	t := &x.tasks[c.parent]
	t.status = max(t.status, s)
	if t.pending--; t.pending == 0 {
		x.reply(c.parent, t.status)
	}
}
