package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/window"
)

// Call is one logical call in progress, for those who write an edge: a
// transport, an interceptor, a consumer. [Retryer.Do] is the example of its
// use:
//
//	call, err := r.Begin(ctx)
//	for {
//		// one attempt, under call.Context(ctx)
//		// on success: call.Succeed(ctx), return
//		d := call.Fail(ctx, failure)
//		if !d.Retry { return call.Err(d, failure) }
//		if err := call.Wait(ctx, d, failure); err != nil { return err }
//	}
//
// A Call belongs to one goroutine. The zero value is not usable.
type Call struct {
	// State may be adjusted before Fail: NeedsKey, Key, Unreplayable.
	State State
	// Patient says that the call may wait for another moment: a refusal that is
	// [Reason.Momentary] does not end it, and [Call.Resume] asks again.
	Patient bool

	r           *Retryer
	began       time.Duration // since the windows' epoch
	timer       *time.Timer
	correlation string
	failed      string // error_type of the latest failed attempt
	lastCost    budget.Cost
	lastPaced   bool
	attempted   time.Duration // when the attempt under way began, from the same zero as began
	failedAt    time.Duration // when the latest attempt failed, likewise
	read        bool
	entered     bool // holds a place in the bulkhead
}

// Begin starts a logical call: it counts its first attempt in the budget.
// An ended context is an error, without an attempt.
func (r *Retryer) Begin(ctx context.Context) (c Call, err error) {
	err = r.begin(ctx, &c)
	return c, err
}

// begin is Begin for a Call that already is where it shall stay. It is most of
// what a success costs: a Call is large to copy, and the monotonic clock alone
// takes half of what time.Now takes.
func (r *Retryer) begin(ctx context.Context, c *Call) error {
	c.r, c.began = r, time.Since(window.Epoch())
	c.attempted = c.began
	if ctx.Err() != nil {
		f, _ := callerEnded(ctx, context.Cause(ctx))
		return r.refuse(ctx, c, f)
	}
	if refused := r.admitCall(ctx, c); refused != ReasonNone {
		return r.turnAway(ctx, c, refused)
	}
	if r.ratio != nil {
		r.ratio.RequestAt(c.began)
	} else {
		r.budget.Request(c.Start())
	}
	if len(r.observers.start) > 0 {
		c.started(ctx)
	}
	return nil
}

// refuse ends a call whose caller has ended before it began.
func (r *Retryer) refuse(ctx context.Context, c *Call, f Failure) error {
	reason := ReasonCanceled
	if f.Type == TypeCallerDeadline {
		reason = ReasonDeadline
	}
	if len(r.observers.stop) > 0 {
		c.stopped(ctx, Decision{Reason: reason, Class: f.Class}, f, c.Start(), 0)
	}
	e := c.Err(Decision{Reason: reason, Class: f.Class}, f)
	e.Attempts = 0
	return e
}

// Attempt returns the number of the attempt under way; the first is 1.
func (c *Call) Attempt() int { return c.State.attempt() }

// Start returns when the call began.
func (c *Call) Start() time.Time { return window.Epoch().Add(c.began) }

// tried returns when the attempt under way began.
func (c *Call) tried() time.Time { return window.Epoch().Add(c.attempted) }

// elapsed returns how long the call has taken so far.
func (c *Call) elapsed() time.Duration { return time.Since(window.Epoch()) - c.began }

// Context returns the context of the attempt under way: the caller's own for
// the first, one that carries the number for each retry.
func (c *Call) Context(ctx context.Context) context.Context {
	if c.Attempt() == 1 {
		return ctx
	}
	return &attemptCtx{Context: ctx, dependency: c.r.dependency, number: c.Attempt(), retryer: c.r}
}

// Succeed ends the call after a good attempt.
func (c *Call) Succeed(ctx context.Context) {
	if c.r.breaker != nil || c.r.pace != nil {
		c.r.Succeeded(&c.State, c.latency(), c.tried())
	}
	c.succeeded(ctx)
}

// succeedUntimed is Succeed for calls whose policy does not say what is slow:
// it saves the reading of the clock.
func (c *Call) succeedUntimed(ctx context.Context) {
	if c.r.pace != nil {
		c.r.pace.ended(breaker.Good, c.tried())
	}
	if c.r.breaker != nil {
		c.r.breaker.RecordGoodAt(c.State.permit, c.attempted)
	}
	c.succeeded(ctx)
}

// succeeded is the part of Succeed that needs no clock.
func (c *Call) succeeded(ctx context.Context) {
	c.leave()
	if c.r.outcomes != nil {
		c.r.outcomes.Succeeded(time.Now(), c.Attempt()-1, c.lastCost)
	}
	if len(c.r.observers.end)+len(c.r.observers.success) > 0 {
		c.endedWell(ctx)
	}
}

// Fail decides what follows a failed attempt. On a retry the caller calls Wait
// next; on a stop it ends with Err.
func (c *Call) Fail(ctx context.Context, f Failure) Decision {
	now := time.Now()
	if !c.read {
		c.read = true
		c.State.Start = c.Start()
		c.State.readContext(ctx)
	}
	if len(c.r.observers.end) > 0 {
		c.ended(ctx, f)
	}
	c.failed, c.failedAt = f.Type, now.Sub(window.Epoch())
	d := c.r.Next(&c.State, f, now)
	if d.Retry {
		c.lastCost, c.lastPaced = d.Cost, d.Paced
	} else {
		c.leave()
	}
	c.decided(ctx, d, f, now, c.made(d))
	return d
}

// made returns the number of attempts that the refusal d ends the call after; 0
// when it does not.
func (c *Call) made(d Decision) int {
	if c.Patient && d.Reason.Momentary() {
		return 0
	}
	return c.Attempt()
}

// decided tells what follows failure f: the retry, or the end of the call after
// so many attempts. Of a retry that is only put off, 0 are told.
func (c *Call) decided(ctx context.Context, d Decision, f Failure, now time.Time, made int) {
	if len(c.r.observers.level) > 0 && (d.Retry || d.Reason == ReasonBudget) {
		c.budgetLevel(ctx, now)
	}
	if d.Retry {
		if len(c.r.observers.retry) > 0 {
			c.scheduled(ctx, d, f)
		}
		return
	}
	if made > 0 {
		noteExhaustion(ctx, d)
	}
	if d.Reason == ReasonCertificate && len(c.r.observers.certificate) > 0 {
		c.certificateRefused(ctx, f)
	}
	if len(c.r.observers.stop) > 0 {
		c.stopped(ctx, d, f, now, made)
	}
}

// Abandon ends a call because an attempt that was granted could not be made at
// all, and returns the error to end with. The budget gets its retry back.
func (c *Call) Abandon(ctx context.Context, f Failure, why Reason) *Error {
	d := Decision{Reason: why, Class: f.Class}
	c.r.Withdraw(&c.State)
	made := 0
	if c.Attempt() > 1 {
		c.unmade(Decision{Retry: true, Cost: c.lastCost, Paced: c.lastPaced})
		made = c.Attempt()
	}
	c.leave()
	if len(c.r.observers.stop) > 0 {
		c.stopped(ctx, d, f, time.Now(), made)
	}
	e := c.Err(d, f)
	e.Attempts = made
	return e
}

// Aborted gives back what the attempt under way holds, the breaker's permit and
// the place in the bulkhead, when it ended in a panic and nothing else is called.
func (c *Call) Aborted() {
	c.r.Withdraw(&c.State)
	c.leave()
}

// Err returns the error that ends the call after the refusal d of failure f.
func (c *Call) Err(d Decision, f Failure) *Error {
	e := &Error{
		Dependency: c.r.dependency,
		Reason:     d.Reason,
		Type:       f.Type,
		Attempts:   c.Attempt(),
		Elapsed:    time.Since(c.Start()),
		Err:        f.Err,
		class:      d.Class,
	}
	if d.Reason == ReasonHintTooLong {
		e.RetryAfter = f.Hint.Floor
	}
	return e
}
