package engine

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// This file is all that the engine asks of a Retryer. Work of durable kinds
// (events, webhooks, batches) is more than a failed attempt and its decision:
// what the budget or the breaker refuses is postponed and consumes no attempt,
// until the policy's total is over.

// kept is what must outlive an attempt, where a plan has a breaker or is durable:
// the call as the Retryer knows it.
type kept struct {
	call edge.DurableCall
	// put says that the call was postponed at least once.
	put bool
}

// none is the context of a simulation: no caller leaves before its deadline.
var none = context.Background()

// caller returns the process that makes call c.
func (x *engine) caller(c *call) *model.Caller { return x.callers[c.edge][c.instance] }

// stateOf returns c as the Retryer wants to see it.
func (x *engine) stateOf(c *call) forbear.State {
	s := forbear.State{
		Attempt:  int(c.attempt),
		Start:    x.epoch.Add(time.Duration(c.start)),
		PrevWait: time.Duration(c.prevWait),
	}
	p := x.m.Edges[c.edge].Plan
	s.NeedsKey, s.Key = p.NeedsKey, p.Key
	if c.deadline > 0 {
		s.Deadline = x.epoch.Add(time.Duration(c.deadline))
	}
	return s
}

// keep begins the call that the Retryer knows. The budget hears of its first attempt
// from the engine, which may have a throttle in front of it.
func (x *engine) keep(i int32) {
	c := &x.calls[i]
	x.kept[i].put = false
	x.caller(c).Begin(&x.kept[i].call, x.stateOf(c))
}

// admit asks whether the next attempt of call i may be made.
func (x *engine) admit(i int32) forbear.Decision { return x.kept[i].call.Ask(none, x.clock()) }

// withdraw returns the permit of an attempt that is not made after all.
func (x *engine) withdraw(i int32) {
	if x.keeps {
		x.kept[i].call.Release()
	}
}

// succeeded records the good end of call i with its budget and its breaker.
func (x *engine) succeeded(i int32) {
	c := &x.calls[i]
	if x.keeps {
		x.kept[i].call.Succeed(none, time.Duration(x.now-c.sent), x.clock())
		return
	}
	x.caller(c).Succeeded(x.clock(), int(c.attempt)-1, c.lastCost)
}

// decide returns what follows failure f of call i. An oblivious caller does not
// know what other layers do.
func (x *engine) decide(i int32, f *forbear.Failure, below bool) forbear.Decision {
	c := &x.calls[i]
	k := &x.passing
	if x.keeps {
		k = &x.kept[i].call
	} else {
		x.caller(c).Begin(k, x.stateOf(c))
	}
	aware := !x.m.Edges[c.edge].Plan.Baseline.Oblivious
	k.State.ExhaustedBelow, k.State.Inner = aware && below, aware && c.inner
	return k.Fail(none, *f, time.Duration(x.now-c.sent), x.clock())
}

// putOff lets call i come again when the Retryer says, unless its total is over
// by then.
func (x *engine) putOff(i int32, d forbear.Decision) {
	c, k := &x.calls[i], &x.kept[i]
	first := k.call.Attempts == 0
	wait := k.call.Postpone(none, d, x.clock())
	c.attempt = int16(k.call.State.Attempt) // a retry that was granted may have been taken back
	if c.parent < 0 {
		x.rec.Postponed[d.Reason]++
		if first && !k.put {
			x.rec.Now.Turned++
		}
	}
	k.put = true
	if time.Duration(x.now-c.start)+wait > x.caller(c).Retryer.Policy().Total {
		x.refuse(i, reason.Deadline)
		return
	}
	x.push(x.now+int64(wait), evRetry, uint32(i), c.gen&genMask)
}

// reconsider asks again about the failure of call i. Its backoff, and what the
// server asked for, count from the failure.
func (x *engine) reconsider(i int32) {
	k, p := &x.kept[i].call, x.m.Edges[x.calls[i].edge].Plan
	failed := k.Pending.At
	d := k.Ask(none, x.clock())
	switch {
	case d.Retry:
		k.Release() // the attempt asks for its own leave
		wait := d.Wait
		if p.Baseline.Wait != "" {
			wait = max(p.Wait(&d, int(x.calls[i].attempt), x.draw)-x.clock().Sub(failed), 0)
		}
		x.grant(i, d, wait)
	case d.Reason.Momentary():
		x.putOff(i, d)
	default:
		x.refuse(i, d.Reason)
	}
}
