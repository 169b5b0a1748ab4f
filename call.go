package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/pace"
	"github.com/forbear-go/forbear/reason"
)

// call is one logical call in progress: what [Retryer.Do] drives, and what package
// edge hands to transports and interceptors as its Call, whose comments say what each
// method is for. It belongs to one goroutine.
type call struct {
	// State may be adjusted before Fail: NeedsKey, Key, Unreplayable, Refreshable,
	// ExhaustedBelow, Inner.
	State State

	r           *Retryer
	pacer       *pace.Pacer    // nil when attempts are not paced
	permit      breaker.Permit // of the attempt under way
	began       time.Duration  // since the windows' epoch
	timer       *time.Timer
	retries     []retryContext // of attempts to come
	correlation string
	failed      string // error_type of the latest failed attempt
	lastCost    budget.Cost
	lastPaced   bool
	lastFree    bool
	attempted   time.Duration // when the attempt under way began, from the same zero as began
	failedAt    time.Duration // when the latest one failed, likewise
	until       time.Duration // when a new call may expect its turn, of one refused
	turned      bool          // has taken a turn for the attempt under way
	read        bool
	sent        bool // an attempt has failed that may have reached the server
	entered     bool // holds a place in the bulkhead
}

// Attempt returns the number of the attempt under way; the first is 1.
func (c *call) Attempt() int { return c.State.attempt() }

// start returns when the call began.
func (c *call) start() time.Time { return window.Epoch().Add(c.began) }

// tried returns when the attempt under way began.
func (c *call) tried() time.Time { return window.Epoch().Add(c.attempted) }

// elapsed returns how long the call has taken so far.
func (c *call) elapsed() time.Duration { return time.Since(window.Epoch()) - c.began }

// Context returns the context of the attempt under way: the caller's own for
// the first, one that carries the number for each retry.
func (c *call) Context(ctx context.Context) context.Context {
	if c.Attempt() == 1 {
		return ctx
	}
	return c.r.retryContext(ctx, c.Attempt())
}

// Limit returns the time that the attempt under way gets of the usual one: half for
// a probe of a dependency that was down (INTG-STD-033), and never more than is left
// of the policy's total.
func (c *call) Limit(usual time.Duration) time.Duration {
	return limit(usual, c.permit, c.r.policy.Total-c.elapsed())
}

// latency returns how long the attempt under way has taken.
func (c *call) latency() time.Duration { return time.Since(window.Epoch()) - c.attempted }

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
	d := c.r.next(&c.State, c.permit, &f, now)
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

// stopped reports the end of the call after so many attempts.
func (c *call) stopped(ctx context.Context, d Decision, f Failure, now time.Time, attempts int) {
	if c.r.observers.stopped {
		c.r.stopped(ctx, c.info(ctx, true), d, f, now.Sub(c.start()), attempts)
	}
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

// Err returns the error that ends the call after the refusal d of failure f.
func (c *call) Err(d Decision, f Failure) *Error {
	elapsed := c.elapsed()
	e := &Error{
		Dependency: c.r.dependency,
		Reason:     d.Reason,
		Type:       f.Type,
		Attempts:   c.Attempt(),
		Elapsed:    elapsed,
		Err:        f.Err,
		class:      d.Class,
		unsent:     !c.sent,
	}
	c.r.figures(e, d, c.start().Add(elapsed))
	switch d.Reason {
	case reason.HintTooLong:
		e.RetryAfter = f.Hint.Floor
	case reason.Paced:
		e.Until = window.Epoch().Add(c.until)
	}
	return e
}

// info returns what all events of the call have in common. name asks for a
// correlation id to be made where there is none.
func (c *call) info(ctx context.Context, name bool) Info {
	if c.correlation == "" {
		c.correlation = c.r.correlation(ctx)
	}
	if c.correlation == "" && name {
		c.correlation = newID()
	}
	key := c.State.Key
	if key == "" {
		key = layer.Key(ctx)
	}
	return Info{
		Dependency:     c.r.dependency,
		CorrelationID:  c.correlation,
		IdempotencyKey: key,
		Attempt:        c.Attempt(),
		MaxAttempts:    c.r.policy.limit(&c.State, Hint{}) + 1,
	}
}

// correlation returns the id under which the calls made under ctx are logged: that of
// [WithCorrelationID], or of [WithCorrelation]; "" when one will be made.
func (r *Retryer) correlation(ctx context.Context) string {
	id := layer.Correlation(ctx)
	if id == "" && r.correlate != nil {
		id = r.correlate(ctx)
	}
	return id
}

// unmade takes back the attempt that d granted.
func (c *call) unmade(d Decision) {
	c.r.refund(d, time.Now())
	c.State.Attempt--
	c.leave()
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

// leave gives the place in the bulkhead back. It may be called more than once.
func (c *call) leave() {
	if c.entered {
		c.entered = false
		c.r.bulkhead.Leave()
	}
}

// Begin ends the call as Succeed does, but for what breaker and health gate make of
// its attempt, and returns what they need to know of it.
func (c *call) Begin(ctx context.Context) (permit breaker.Permit, took time.Duration, tried time.Time) {
	c.passed()
	permit, took, tried = c.permit, c.latency(), c.tried()
	c.succeeded(ctx)
	return permit, took, tried
}

// Retryer returns the Retryer whose call it is.
func (c *call) Retryer() *Retryer { return c.r }
