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
	listed      []FailedAttempt
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

// stopped reports the end of the call after so many attempts.
func (c *call) stopped(ctx context.Context, d Decision, f Failure, now time.Time, attempts int) {
	if c.r.observers.stopped {
		c.r.stopped(ctx, c.info(ctx, true), d, f, now.Sub(c.start()), attempts)
	}
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
		kind:       c.r.policy.Kind,
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
		Failed:         c.listed,
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

// leave gives the place in the bulkhead back. It may be called more than once.
func (c *call) leave() {
	if c.entered {
		c.entered = false
		c.r.bulkhead.Leave()
	}
}

// Retryer returns the Retryer whose call it is.
func (c *call) Retryer() *Retryer { return c.r }

// limit returns the time that an attempt gets of the usual one: half for a probe of
// a dependency that was down (INTG-STD-033), and never more than is left.
func limit(usual time.Duration, permit breaker.Permit, left time.Duration) time.Duration {
	if permit.Probe {
		usual /= 2
	}
	return min(usual, max(left, 1))
}
