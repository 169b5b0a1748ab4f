package edge

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/reason"
)

// DurableCall is one logical call that waits elsewhere than in a goroutine: in a
// queue, a database, a schedule of many items. Between its attempts only its
// [Progress] is kept, so that another process may continue it:
//
//	call := edge.Durable(ctx, r, stored)
//	d := call.Ask(ctx, now)
//	if d.Retry && d.Wait == 0 {
//		d, err = call.Try(ctx, op) // or one attempt, and call.Fail or call.Succeed
//	}
//	switch {
//	case d.Reason == reason.Success: // done
//	case d.Retry:                    // store call.Progress, come again after d.Wait
//	case d.Reason.Momentary():       // likewise, after call.Postpone(ctx, d, now)
//	default:                         // over: a dead letter, because of d.Reason
//	}
//
// Its decisions are those of forbear.Retryer.Next; it asks the breaker and the bulkhead
// before each attempt and reports every event. The time is an argument. A
// DurableCall belongs to one goroutine at a time.
type DurableCall struct {
	// Progress is what is stored. State.ExhaustedBelow may be set before Fail.
	Progress

	r           *forbear.Retryer
	correlation string
	permit      breaker.Permit  // of the attempt under way
	entered     bool            // holds a place in the bulkhead
	failure     forbear.Failure // the latest that was seen in this process
	failedAt    time.Time
	listed      []forbear.FailedAttempt
	granted     forbear.Decision // a retry that was granted in this process and not begun
	free        bool             // the latest retry was not taken from the budget
}

// Durable continues a call of which p is known; a zero Progress begins one. The call
// takes its correlation id from ctx. Work of kind Batch, which ends with its process, is
// bound by the deadline of ctx too.
func Durable(ctx context.Context, r *forbear.Retryer, p Progress) *DurableCall {
	c := &DurableCall{Progress: p, r: r, correlation: CorrelationOf(ctx, r)}
	if !c.kind().Durable() {
		r.Edge(key).Read(ctx, &c.State)
	}
	return c
}

func (c *DurableCall) kind() forbear.Kind { return c.r.Edge(key).Policy().Kind }

// waits reports whether a refused retry of this work waits instead of ending the call.
func (c *DurableCall) waits() bool { return c.kind().Durable() || c.kind() == forbear.Batch }

// Ask asks whether an attempt may be made now: the first, or the next when its
// wait is over or its decision was postponed.
//
// A retry without a wait has begun: make the attempt, then call Fail, Succeed or
// Release. One with a wait comes again when that is over; the backoff counts from
// the failure. A refusal of the moment (see [reason.Reason.Momentary]) leaves the call as
// it was, to ask again at once or to Postpone. Any other refusal ends it.
func (c *DurableCall) Ask(ctx context.Context, now time.Time) forbear.Decision {
	if d := c.over(ctx, now); d.Reason != reason.None {
		return d
	}
	if why := c.enter(now); why != reason.None {
		c.takeBack(now)
		return c.decided(ctx, forbear.Decision{Reason: why, Class: c.failure.Class}, c.latest(why), now)
	}
	if c.Pending != nil {
		if d := c.reconsider(ctx, now); !d.Retry || d.Wait > 0 {
			c.Release()
			return d
		}
	}
	if c.State.Attempt == 0 {
		c.State.Attempt = 1
		if c.State.Start.IsZero() {
			c.State.Start = now
		}
		c.r.Edge(key).Request(now)
	}
	c.granted = forbear.Decision{}
	c.r.Edge(key).Started(ctx, c.info(c.Attempts+1))
	return forbear.Decision{Retry: true, Reason: reason.Retryable, Class: c.failure.Class}
}

// over ends a call whose time or whose caller is gone.
func (c *DurableCall) over(ctx context.Context, now time.Time) forbear.Decision {
	switch {
	case c.remaining(now) <= 0:
		return c.end(ctx, reason.Deadline, now)
	case ctx.Err() == nil:
		return forbear.Decision{}
	case c.kind().Durable():
		return forbear.Decision{Reason: reason.Canceled, Class: forbear.ClassCanceled} // another process continues it
	}
	return c.end(ctx, reason.Canceled, now)
}

func (c *DurableCall) remaining(now time.Time) time.Duration {
	return c.r.Edge(key).Remaining(&c.State, now)
}

// enter asks the bulkhead and the breaker for permission to make an attempt.
func (c *DurableCall) enter(now time.Time) (why forbear.Reason) {
	if b := c.r.Bulkhead(); b != nil {
		if !b.Enter() {
			return reason.BulkheadFull
		}
		c.entered = true
	}
	if c.permit, why = c.r.Edge(key).Admit(now); why != reason.None {
		c.leave()
	}
	return why
}

func (c *DurableCall) leave() {
	if c.entered {
		c.entered = false
		c.r.Bulkhead().Leave()
	}
}

// reconsider asks again about the retry that was postponed. The failure is not a new
// one: neither the breaker nor the count of DNS failures counts it a second time.
//
// It comes after enter. A breaker whose wait is over moves only when it is asked
// for an attempt, so that a call that reconsidered alone would find it open for
// ever.
func (c *DurableCall) reconsider(ctx context.Context, now time.Time) forbear.Decision {
	f := c.Pending.failure(now)
	f.Err = c.failure.Err
	d := c.r.Edge(key).Reconsider(&c.State, &f, now)
	if d.Retry {
		d.Wait = c.Pending.left(d.Wait, now)
		c.Pending = nil
	}
	return c.decided(ctx, d, f, now)
}

// Fail decides what follows the failed attempt under way, which took the given
// time.
func (c *DurableCall) Fail(ctx context.Context, f forbear.Failure, took time.Duration, now time.Time) forbear.Decision {
	c.leave()
	c.Attempts++
	c.Last, c.failure = f.Type, f
	c.r.Edge(key).Ended(ctx, c.info(c.Attempts), f, took)
	d := c.r.Edge(key).Next(&c.State, c.permit, &f, now)
	c.permit = breaker.Permit{}
	c.failedAt = now
	c.listed = c.r.Edge(key).Listed(c.listed, forbear.FailedAttempt{
		Number: c.Attempts, At: now.Add(-took), Took: took, Failure: f, Reason: d.Reason, Wait: d.Wait,
	})
	if d.Reason.Momentary() && c.waits() {
		c.Pending = c.pending()
	}
	return c.decided(ctx, d, f, now)
}

// pending returns the latest failure as one that waits for its decision.
func (c *DurableCall) pending() *Pending {
	p := &Pending{Class: c.failure.Class, Type: c.failure.Type, At: c.failedAt}
	if floor := c.failure.Hint.Floor; floor > 0 {
		p.Until = p.At.Add(floor)
	}
	return p
}

// takeBack turns a retry that was granted in this process, and cannot be sent now, into
// one whose decision is open: the budget gets it back. One that an earlier process was
// granted stays granted, since its window is over.
func (c *DurableCall) takeBack(now time.Time) {
	if !c.granted.Retry {
		return
	}
	c.r.Edge(key).Refund(c.granted, now)
	c.State.Attempt--
	switch c.granted.Reason { // what State.After has counted
	case reason.Refresh:
		c.State.Refreshes--
	case reason.Resend:
		c.State.Resends--
	}
	c.granted = forbear.Decision{}
	if c.waits() {
		c.Pending = c.pending()
	}
}

// Succeed ends the call after a good attempt, which took the given time.
func (c *DurableCall) Succeed(ctx context.Context, took time.Duration, now time.Time) {
	c.leave()
	c.Attempts++
	e := c.r.Edge(key)
	e.Good(c.permit, took, now)
	retries := c.Attempts - 1
	if c.free {
		retries = 0 // there is nothing to pay back
	}
	e.PayBack(now, retries, c.failure.Class)
	i := c.info(c.Attempts)
	e.Ended(ctx, i, forbear.Failure{Class: forbear.ClassSuccess}, took)
	e.Succeeded(ctx, i, c.elapsed(now), c.Last)
}

// Release ends an attempt that was not made after all, or that says nothing about
// the dependency. The call may ask again.
func (c *DurableCall) Release() {
	c.r.Edge(key).Withdraw(c.permit)
	c.permit = breaker.Permit{}
	c.leave()
}

// Timeout returns the time that the attempt under way gets: that of the policy,
// half of it for a probe of a dependency that was down (INTG-STD-033), and never
// more than is left of the total.
func (c *DurableCall) Timeout(now time.Time) time.Duration {
	e := c.r.Edge(key)
	return e.Limit(e.Policy().AttemptTimeout(), c.permit, c.remaining(now))
}
