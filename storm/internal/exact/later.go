package exact

import (
	"time"

	"github.com/forbear-go/forbear"
)

// This file is about work of durable kinds (events, webhooks, batches): what the
// budget or the breaker refuses is put off and consumes no attempt, until the
// policy's total is over.

// kept is what must outlive an attempt.
type kept struct {
	state forbear.State
	// pending is the failure whose decision was put off, if any.
	pending  *forbear.Failure
	failedAt int64
	put      bool  // it was put off
	refused  uint8 // how often by the budget, as far as that counts
}

// putOff lets call i come again when the Retryer says.
func (x *engine) putOff(i int32, why forbear.Reason) {
	c, k := &x.calls[i], &x.kept[i]
	r := x.callers[c.edge][c.instance].Retryer
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
		if c.parent < 0 {
			x.rec.Refuse(forbear.ReasonDeadline, 1)
		}
		x.finish(i, verdictOf(forbear.ReasonDeadline))
		return
	}
	x.push(x.now+int64(wait), evRetry, uint32(i), c.gen&genMask)
}

// resume goes on with call i, whose wait is over.
func (x *engine) resume(i int32) {
	c := &x.calls[i]
	switch {
	case x.keeps && x.kept[i].pending != nil:
		x.reconsider(i)
	case c.attempt == 1:
		x.first(i)
	default:
		x.send(i)
	}
}

// reconsider asks again about the failure of call i. Its backoff, and what the
// server asked for, count from the failure.
func (x *engine) reconsider(i int32) {
	c, k := &x.calls[i], &x.kept[i]
	p := x.m.Edges[c.edge].Plan
	r := x.callers[c.edge][c.instance].Retryer
	now := x.clock()
	if why := r.Admit(&k.state, now); why != forbear.ReasonNone {
		x.putOff(i, why)
		return
	}
	gone := time.Duration(x.now - k.failedAt)
	f := *k.pending
	f.Hint.Floor = max(f.Hint.Floor-gone, 0)
	s := k.state
	d := r.Reconsider(&s, f, now)
	r.Withdraw(&k.state) // the attempt asks for its own leave
	switch {
	case d.Retry:
		k.pending = nil
		x.granted(i, &s, d, max(p.Wait(&d, int(c.attempt), x.draw)-gone, f.Hint.Floor))
	case d.Reason.Momentary():
		x.putOff(i, d.Reason)
	default:
		if c.parent < 0 {
			x.rec.Refuse(d.Reason, 1)
		}
		x.finish(i, verdictOf(d.Reason))
	}
}
