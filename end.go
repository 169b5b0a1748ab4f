package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/reason"
)

// This file says what the end of an attempt means: for the call, and for all that its
// Retryer has learned from it.

// Succeed ends the call after a good attempt.
func (c *call) Succeed(ctx context.Context) {
	c.passed()
	if c.r.breaker != nil || c.r.earned != nil || c.r.gate != nil {
		c.r.recordGood(c.permit, c.latency(), c.tried())
	}
	c.succeeded(ctx)
}

// succeedUntimed is Succeed for calls whose policy does not say what is slow:
// it saves the reading of the clock.
func (c *call) succeedUntimed(ctx context.Context) {
	c.passed()
	if c.r.earned != nil {
		c.r.earned.ended(breaker.Good, c.tried())
	}
	if c.r.gate != nil {
		c.r.gate.RecordGoodAt(c.attempted)
	}
	if c.r.breaker != nil {
		c.r.breaker.RecordGoodAt(c.permit, c.attempted)
	}
	c.succeeded(ctx)
}

// succeeded is the part of Succeed that needs no clock.
func (c *call) succeeded(ctx context.Context) {
	c.leave()
	r := c.r
	if r.outcomes != nil {
		retries := c.Attempt() - 1
		if c.lastFree {
			retries = 0 // there is nothing to pay back
		}
		r.outcomes.Succeeded(time.Now(), retries, c.lastCost)
	}
	if !r.observers.ended && !r.observers.succeeded {
		return
	}
	info, took := c.info(ctx, false), c.latency()
	r.attemptEnded(ctx, info, Failure{Class: ClassSuccess}, took)
	r.callSucceeded(ctx, info, took+c.attempted-c.began, c.failed)
}

// Fail decides what follows a failed attempt. On a retry the caller calls Wait
// next; on a stop it ends with Err.
func (c *call) Fail(ctx context.Context, f Failure) Decision {
	now := time.Now()
	c.sent = c.sent || !f.Unsent
	if !c.read {
		c.read = true
		c.State.Start = c.start()
		readContext(ctx, &c.State)
	}
	if c.r.observers.ended {
		c.r.attemptEnded(ctx, c.info(ctx, true), f, c.latency())
	}
	c.failed, c.failedAt = f.Type, now.Sub(window.Epoch())
	c.learn(&f, now)
	number := c.Attempt()
	d := c.r.next(&c.State, c.permit, &f, now)
	c.listed = c.r.listed(c.listed, FailedAttempt{number, c.tried(), c.failedAt - c.attempted, f, d.Reason, d.Wait})
	if d.Retry {
		c.lastCost, c.lastPaced, c.lastFree = d.Cost, d.Paced, d.free
		if c.r.observers.scheduled {
			c.r.retryScheduled(ctx, c.info(ctx, true), d, f)
		}
		return d
	}
	c.leave()
	noteExhaustion(ctx, d)
	c.stopped(ctx, d, f, now, c.Attempt())
	return d
}

// Abandon ends a call because an attempt that was granted could not be made at
// all, and returns the error to end with. The budget gets its retry back.
func (c *call) Abandon(ctx context.Context, f Failure, why Reason) *Error {
	if why == reason.Canceled {
		why = endedReason(f)
	}
	d := Decision{Reason: why, Class: f.Class}
	c.r.withdraw(c.permit)
	c.giveBack()
	made := 0
	if c.Attempt() > 1 {
		c.unmade(Decision{Retry: true, Cost: c.lastCost, Paced: c.lastPaced, free: c.lastFree})
		made = c.Attempt()
	}
	c.leave()
	c.stopped(ctx, d, f, time.Now(), made)
	e := c.Err(d, f)
	e.Attempts = made
	return e
}

// Aborted gives back what the attempt under way holds, the breaker's permit and
// the place in the bulkhead, when it ended in a panic and nothing else is called.
func (c *call) Aborted() {
	c.r.withdraw(c.permit)
	c.leave()
}

// Begin ends the call as Succeed does, except that breaker and health gate do not count
// its attempt yet, and returns what they need to count it later.
func (c *call) Begin(ctx context.Context) (permit breaker.Permit, took time.Duration, tried time.Time) {
	c.passed()
	permit, took, tried = c.permit, c.latency(), c.tried()
	c.succeeded(ctx)
	return permit, took, tried
}

// Hold hands the call's place in the bulkhead to the caller, who gives it back with
// Leave: for edges whose work goes on after the call has ended, such as a response
// whose body is still being read. It is nil when the policy sets no bound.
func (c *call) Hold() *breaker.Bulkhead {
	if !c.entered {
		return nil
	}
	c.entered = false
	return c.r.bulkhead
}
