package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// This file is for calls that wait elsewhere than in [Call.Wait]: in a queue,
// while others are worked on. They are Patient:
//
//	call, err := r.Begin(ctx)
//	call.Patient = true
//	d, f := call.Try(ctx, op)
//	for d.Retry || d.Reason.Momentary() {
//		// later: when d.Wait is over, or when the moment may have changed
//		if d = call.Resume(ctx, d, f); d.Retry && d.Wait == 0 {
//			d, f = call.Try(ctx, op)
//		}
//	}
//	// d.Reason is ReasonSuccess, or why the call has failed: call.Err(d, f)

// Try makes the attempt under way as [Retryer.Do] does and decides what
// follows. The reason of the decision is ReasonSuccess when the call is over.
func (c *Call) Try(ctx context.Context, op func(context.Context) error) (Decision, Failure) {
	if c.Patient {
		defer c.leave() // a call that waits holds no place
	}
	err := c.r.attempt(c.Context(ctx), c, op)
	if err == nil {
		c.r.succeed(ctx, c)
		return Decision{Reason: ReasonSuccess, Class: ClassSuccess}, Failure{Class: ClassSuccess}
	}
	f := classify(ctx, err, c.r.classifiers)
	c.State.ExhaustedBelow = ExhaustedBelow(err)
	return c.Fail(ctx, f), f
}

// Resume goes on with a patient call after failure f. last is what was decided
// about it: a retry, whose wait is over now, or a refusal of the moment, which
// is asked about again.
//
// A retry without a wait has begun: Try makes it. One with a wait is resumed
// when that is over; the backoff counts from the failure. A refusal of the
// moment leaves the call as it was and is observed once for each failure; any other
// ends it.
func (c *Call) Resume(ctx context.Context, last Decision, f Failure) Decision {
	c.attempted = time.Since(window.Epoch())
	now := window.Epoch().Add(c.attempted)
	why := c.enter(ctx, now)
	switch {
	case why.Momentary() && !last.Retry: // as before
		return last
	case why != ReasonNone:
		d := c.takeBack(last, why, now)
		c.decided(ctx, d, f, now, c.made(d))
		return d
	case !last.Retry:
		if last = c.reconsider(ctx, f, now); !last.Retry || last.Wait > 0 {
			c.r.Withdraw(&c.State)
			c.leave()
			return last
		}
	}
	if len(c.r.observers.start) > 0 {
		c.started(ctx)
	}
	last.Wait = 0
	return last
}

// reconsider asks about a retry that was put off.
func (c *Call) reconsider(ctx context.Context, f Failure, now time.Time) Decision {
	waited := c.attempted - c.failedAt
	f.Hint.Floor = max(f.Hint.Floor-waited, 0)
	d := c.r.Reconsider(&c.State, f, now)
	if d.Retry {
		d.Wait = max(d.Wait-waited, f.Hint.Floor)
		c.lastCost, c.lastPaced = d.Cost, d.Paced
	}
	if !d.Reason.Momentary() {
		c.decided(ctx, d, f, now, c.made(d))
	}
	return d
}

// enter asks for the leave to make another attempt.
func (c *Call) enter(ctx context.Context, now time.Time) Reason {
	switch {
	case c.r.policy.remaining(&c.State, now) <= 0:
		return ReasonDeadline
	case ctx.Err() != nil:
		return ReasonCanceled
	}
	if c.r.bulkhead != nil {
		if !c.r.bulkhead.Enter() {
			return ReasonBulkheadFull
		}
		c.entered = true
	}
	why := c.r.Admit(&c.State, now)
	if why != ReasonNone {
		c.leave()
	}
	return why
}

// GiveUp ends a patient call that waits, for a reason of its caller's, and
// returns the error to end with. last is what was decided about failure f.
func (c *Call) GiveUp(ctx context.Context, last Decision, f Failure, why Reason) *Error {
	now := time.Now()
	d := c.takeBack(last, why, now)
	c.decided(ctx, d, f, now, c.Attempt())
	return c.Err(d, f)
}

// takeBack turns the latest decision into a refusal; the budget gets a retry
// that was granted back.
func (c *Call) takeBack(last Decision, why Reason, now time.Time) Decision {
	if last.Retry {
		c.r.Refund(last, now)
		c.State.Attempt--
	}
	return last.stop(why)
}
