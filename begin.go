package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/reason"
)

// This file says how a live call begins: what lets it in, and how one ends that
// was not let in.

// begin starts a logical call and counts its first attempt in the budget. An ended
// context is an error, without an attempt. It is most of what a success costs: a call
// is large to copy, so that begin fills one in its place, and the monotonic clock
// alone takes half of what time.Now takes.
func (r *Retryer) begin(ctx context.Context, c *call) error {
	c.r, c.began = r, time.Since(window.Epoch())
	c.attempted = c.began
	if c.pacer == nil {
		c.pacer = r.pacer
	}
	if ctx.Err() != nil {
		f, _ := callerEnded(ctx, nil)
		return r.refuse(ctx, c, endedReason(f), f)
	}
	if refused := r.admitCall(ctx, c); refused != reason.None {
		c.leave()
		c.giveBack()
		if refused == reason.Canceled { // while it waited for its turn
			f, _ := callerEnded(ctx, nil)
			return r.refuse(ctx, c, endedReason(f), f)
		}
		return r.refuse(ctx, c, refused, Failure{Class: ClassTerminal, Type: refused.String()})
	}
	if r.ratio != nil {
		r.ratio.RequestAt(c.began)
	} else {
		r.budget.Request(c.start())
	}
	if r.observers.started {
		r.attemptStarted(ctx, c.info(ctx, true))
	}
	return nil
}

// admitCall asks, from the outside in, whether the call may begin: enough time, its
// turn, a place in the bulkhead, a breaker that is not open. A call that waits for its turn
// takes no place from calls under way.
func (r *Retryer) admitCall(ctx context.Context, c *call) (why Reason) {
	// The default MinAttempt is about retries; a caller in a hurry may still
	// try once.
	if least := r.given.MinAttempt; least > 0 {
		if d, ok := ctx.Deadline(); ok && d.Sub(c.start()) < least {
			return reason.Deadline
		}
	}
	if c.paced() {
		if why = c.turn(ctx, c.began); why != reason.None {
			return why
		}
	}
	if r.bulkhead != nil {
		if !r.bulkhead.Enter() {
			if r.breaker != nil {
				permit, _ := r.breaker.Glance()
				r.breaker.Record(permit, breaker.Failed, c.tried())
			}
			return reason.BulkheadFull
		}
		c.entered = true
	}
	if r.breaker == nil {
		return reason.None
	}
	var closed bool
	if c.permit, closed = r.breaker.Glance(); closed {
		return reason.None
	}
	c.permit, why = r.admit(c.tried())
	return why
}

// refuse ends a call that was not let in.
func (r *Retryer) refuse(ctx context.Context, c *call, why Reason, f Failure) error {
	d := Decision{Reason: why, Class: f.Class}
	c.stopped(ctx, d, f, c.start(), 0)
	e := c.Err(d, f)
	e.Attempts = 0
	return e
}
