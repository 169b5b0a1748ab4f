package forbear

import (
	"context"

	"github.com/forbear-go/forbear/breaker"
)

// This file says how a live call begins: what lets it in, and how one ends that
// was not let in.

// admitCall asks, from the outside in, whether the call may begin: enough time,
// a place in the bulkhead, a breaker that is not open.
func (r *Retryer) admitCall(ctx context.Context, c *Call) (why Reason) {
	// The default MinAttempt is about retries; a caller in a hurry may still
	// try once.
	if least := r.given.MinAttempt; least > 0 {
		if d, ok := ctx.Deadline(); ok && d.Sub(c.Start()) < least {
			return ReasonDeadline
		}
	}
	if r.bulkhead != nil {
		if !r.bulkhead.Enter() {
			if r.breaker != nil {
				permit, _ := r.breaker.Glance()
				r.breaker.Record(permit, breaker.Failed, c.Start())
			}
			return ReasonBulkheadFull
		}
		c.entered = true
	}
	if r.breaker == nil {
		return ReasonNone
	}
	var closed bool
	if c.permit, closed = r.breaker.Glance(); closed {
		return ReasonNone
	}
	c.permit, why = r.admit(c.Start())
	return why
}

// refuse ends a call that was not let in.
func (r *Retryer) refuse(ctx context.Context, c *Call, why Reason, f Failure) error {
	d := Decision{Reason: why, Class: f.Class}
	c.stopped(ctx, d, f, c.Start(), 0)
	e := c.Err(d, f)
	e.Attempts = 0
	return e
}

// endedReason returns why a call is over whose caller has ended.
func endedReason(f Failure) Reason {
	if f.Type == TypeCallerDeadline {
		return ReasonDeadline
	}
	return ReasonCanceled
}

// leave gives the place in the bulkhead back. It may be called more than once.
func (c *Call) leave() {
	if c.entered {
		c.entered = false
		c.r.bulkhead.Leave()
	}
}
