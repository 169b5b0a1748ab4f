package exact

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// This file is all that the engine asks of a Retryer. Work of durable kinds
// (events, webhooks, batches) is more than a failed attempt and its decision:
// what the budget or the breaker refuses is put off and consumes no attempt,
// until the policy's total is over.

// kept is what must outlive an attempt, where a plan has a breaker or is durable.
type kept struct {
	// state holds the breaker's permit of the attempt under way.
	state forbear.State
	// pending is the failure whose decision was put off, if any, and failedAt when
	// it was.
	pending  *forbear.Failure
	failedAt int64
	// put says that the call was put off at least once.
	put bool
	// refused is how often the budget put it off, as far as that counts: the waits
	// between grow with it.
	refused uint8
}

// caller returns the process that makes call c.
func (x *engine) caller(c *call) *model.Caller { return x.callers[c.edge][c.instance] }

// stateOf returns c as the Retryer wants to see it.
func (x *engine) stateOf(c *call) forbear.State {
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

// admit asks whether the breaker lets the next attempt of call i through.
func (x *engine) admit(i int32) forbear.Reason {
	return x.caller(&x.calls[i]).Retryer.Admit(&x.kept[i].state, x.clock())
}

// withdraw returns the permit of an attempt that is not made after all.
func (x *engine) withdraw(i int32) {
	if x.keeps {
		x.caller(&x.calls[i]).Retryer.Withdraw(&x.kept[i].state)
	}
}

// probing reports whether the attempt of call i is a probe of a half-open
// breaker.
func (x *engine) probing(i int32) bool { return x.kept[i].state.Probe() }

// succeeded records the good end of call i with its budget and its breaker.
func (x *engine) succeeded(i int32) {
	c := &x.calls[i]
	b := x.caller(c)
	b.Succeeded(x.clock(), int(c.attempt)-1, c.lastCost)
	if x.keeps {
		b.Retryer.Succeeded(&x.kept[i].state, time.Duration(x.now-c.sent), x.clock())
	}
}

// refund gives the budget back what a retry took that the breaker stopped.
func (x *engine) refund(c *call) {
	x.caller(c).Retryer.Refund(forbear.Decision{Retry: true, Cost: c.lastCost}, x.clock())
}

// decide returns what follows failure f of call i, and the state after it. An
// oblivious caller does not know what other layers do.
func (x *engine) decide(i int32, f *forbear.Failure, below bool) (forbear.State, forbear.Decision) {
	c := &x.calls[i]
	s := x.stateOf(c)
	if x.keeps {
		s = x.kept[i].state
	}
	if !x.m.Edges[c.edge].Plan.Baseline.Oblivious {
		s.ExhaustedBelow, s.Inner = below, c.inner
	}
	d := x.caller(c).Retryer.Next(&s, *f, x.clock())
	return s, d
}

// putOff lets call i come again when the Retryer says, unless its total is over
// by then.
func (x *engine) putOff(i int32, why forbear.Reason) {
	c, k := &x.calls[i], &x.kept[i]
	r := x.caller(c).Retryer
	wait := r.PutOff(why, int(k.refused), x.clock())
	if c.parent < 0 {
		x.rec.Postponed[why]++
		if c.attempt == 1 && k.pending == nil && !k.put {
			x.rec.Now.Turned++
		}
	}
	k.put = true
	if why == forbear.ReasonBudget && k.refused < 1<<8-1 {
		k.refused++
	}
	if time.Duration(x.now-c.start)+wait > r.Policy().Total {
		x.refuse(i, forbear.ReasonDeadline)
		return
	}
	x.push(x.now+int64(wait), evRetry, uint32(i), c.gen&genMask)
}

// reconsider asks again about the failure of call i. Its backoff, and what the
// server asked for, count from the failure.
func (x *engine) reconsider(i int32) {
	c, k := &x.calls[i], &x.kept[i]
	if why := x.admit(i); why != forbear.ReasonNone {
		x.putOff(i, why)
		return
	}
	gone := time.Duration(x.now - k.failedAt)
	f := *k.pending
	f.Hint.Floor = max(f.Hint.Floor-gone, 0)
	s := k.state
	d := x.caller(c).Retryer.Reconsider(&s, f, x.clock())
	x.withdraw(i) // the attempt asks for its own leave
	switch {
	case d.Retry:
		k.pending = nil
		p := x.m.Edges[c.edge].Plan
		x.grant(i, &s, d, max(p.Wait(&d, int(c.attempt), x.draw)-gone, f.Hint.Floor))
	case d.Reason.Momentary():
		x.putOff(i, d.Reason)
	default:
		x.refuse(i, d.Reason)
	}
}
