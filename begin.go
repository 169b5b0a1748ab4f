package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/pace"
)

// This file says how a live call begins: what lets it in, and how one ends that
// was not let in.

// Begin starts a logical call: it counts its first attempt in the budget.
// An ended context is an error, without an attempt.
func (r *Retryer) Begin(ctx context.Context) (c Call, err error) {
	err = r.begin(ctx, &c)
	return c, err
}

// BeginPaced is [Retryer.Begin] for a call that p paces in place of the Retryer's own:
// for edges that are given a Pacer. A nil p changes nothing.
func (r *Retryer) BeginPaced(ctx context.Context, p *pace.Pacer) (c Call, err error) {
	c.pacer = p
	err = r.begin(ctx, &c)
	return c, err
}

// begin is Begin for a Call that already is where it shall stay. It is most of
// what a success costs: a Call is large to copy, and the monotonic clock alone
// takes half of what time.Now takes.
func (r *Retryer) begin(ctx context.Context, c *Call) error {
	c.r, c.began = r, time.Since(window.Epoch())
	c.attempted = c.began
	if c.pacer == nil {
		c.pacer = r.pacer
	}
	if ctx.Err() != nil {
		f, _ := callerEnded(ctx, nil)
		return r.refuse(ctx, c, endedReason(f), f)
	}
	if refused := r.admitCall(ctx, c); refused != ReasonNone {
		c.leave()
		c.giveBack()
		if refused == ReasonCanceled { // while it waited for its turn
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
// turn, a place in the bulkhead, a breaker that is not open. Who waits for a turn
// takes no place from those who are under way.
func (r *Retryer) admitCall(ctx context.Context, c *Call) (why Reason) {
	// The default MinAttempt is about retries; a caller in a hurry may still
	// try once.
	if least := r.given.MinAttempt; least > 0 {
		if d, ok := ctx.Deadline(); ok && d.Sub(c.start()) < least {
			return ReasonDeadline
		}
	}
	if c.paced() {
		if why = c.turn(ctx, c.began); why != ReasonNone {
			return why
		}
	}
	if r.bulkhead != nil {
		if !r.bulkhead.Enter() {
			if r.breaker != nil {
				permit, _ := r.breaker.Glance()
				r.breaker.Record(permit, breaker.Failed, c.tried())
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
	c.permit, why = r.admit(c.tried())
	return why
}

// refuse ends a call that was not let in.
func (r *Retryer) refuse(ctx context.Context, c *Call, why Reason, f Failure) error {
	d := Decision{Reason: why, Class: f.Class}
	c.stopped(ctx, d, f, c.start(), 0)
	e := c.Err(d, f)
	e.Attempts = 0
	return e
}

// endedReason returns why a call is over whose caller has ended.
func endedReason(f Failure) Reason {
	if f.Type == errtype.CallerDeadline {
		return ReasonDeadline
	}
	return ReasonCanceled
}
