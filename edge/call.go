package edge

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/only"
	"github.com/forbear-go/forbear/pace"
)

// key opens the engine.
var key only.Edge

// Call is one logical call in progress, as a transport or an interceptor drives it:
//
//	call, err := edge.Begin(ctx, r)
//	for {
//		// one attempt, under call.Context(ctx)
//		// on success: call.Succeed(ctx), return
//		d := call.Fail(ctx, failure)
//		if !d.Retry { return call.Err(d, failure) }
//		if err := call.Wait(ctx, d, failure); err != nil { return err }
//	}
//
// A Call belongs to one goroutine. The zero value is not usable.
type Call struct{ live forbear.Live }

// Begin starts a logical call: it counts its first attempt in the budget. An ended
// context is an error, without an attempt.
func Begin(ctx context.Context, r *forbear.Retryer) (Call, error) { return BeginPaced(ctx, r, nil) }

// BeginPaced is [Begin] for a call that p paces in place of the Retryer's own pacer: for
// edges that are given one. A nil p changes nothing.
func BeginPaced(ctx context.Context, r *forbear.Retryer, p *pace.Pacer) (c Call, err error) {
	err = r.Edge(key).Begin(ctx, &c.live, p)
	return c, err
}

// State returns what the call has used so far. NeedsKey, Key, Unreplayable, Refreshable,
// ExhaustedBelow and Inner may be set before [Call.Fail].
func (c *Call) State() *forbear.State { return &c.live.Call(key).State }

// Attempt returns the number of the attempt under way; the first is 1.
func (c *Call) Attempt() int { return c.live.Call(key).Attempt() }

// Context returns the context of the attempt under way: the caller's own for the first,
// one that carries the number for each retry.
func (c *Call) Context(ctx context.Context) context.Context { return c.live.Call(key).Context(ctx) }

// Limit returns the time that the attempt under way gets of the usual one: half for a
// probe of a dependency that was down (INTG-STD-033), and never more than is left of the
// policy's total.
func (c *Call) Limit(usual time.Duration) time.Duration { return c.live.Call(key).Limit(usual) }

// Succeed ends the call after a good attempt.
func (c *Call) Succeed(ctx context.Context) { c.live.Call(key).Succeed(ctx) }

// Fail decides what follows a failed attempt. After a retry comes [Call.Wait], after a
// stop [Call.Err].
func (c *Call) Fail(ctx context.Context, f forbear.Failure) forbear.Decision {
	return c.live.Call(key).Fail(ctx, f)
}

// Wait waits as d says, counted from the failure, and begins the next attempt. When the
// caller ends first, the budget gets its retry back, and the error holds both the last
// failure f and the caller's end.
func (c *Call) Wait(ctx context.Context, d forbear.Decision, f forbear.Failure) error {
	return c.live.Call(key).Wait(ctx, d, f)
}

// Err returns the error that ends the call after the refusal d of failure f.
func (c *Call) Err(d forbear.Decision, f forbear.Failure) *forbear.Error {
	return c.live.Call(key).Err(d, f)
}

// Abandon ends a call because an attempt that was granted could not be made at all, and
// returns the error to end with. The budget gets its retry back.
func (c *Call) Abandon(ctx context.Context, f forbear.Failure, why forbear.Reason) *forbear.Error {
	return c.live.Call(key).Abandon(ctx, f, why)
}

// Aborted gives back what the attempt under way holds, the breaker's permit and the place
// in the bulkhead, when it ended in a panic and nothing else is called.
func (c *Call) Aborted() { c.live.Call(key).Aborted() }

// Hold hands the call's place in the bulkhead to the caller, who gives it back with Leave:
// for edges whose work continues after the call has ended, such as a response whose body is
// still being read. It is nil when the policy sets no bound.
func (c *Call) Hold() *breaker.Bulkhead { return c.live.Call(key).Hold() }
