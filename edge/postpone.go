package edge

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
)

// Postpone acts on a refusal of the moment: it counts and reports it, and returns
// how long the call stays away. Behind an open breaker that is until it lets
// something through and up to a quarter more; otherwise a second and up to 2 s,
// 4 s ... 5 min more, so that a crowd spreads. It is never less than the server
// asked for.
func (c *DurableCall) Postpone(ctx context.Context, refused forbear.Decision, now time.Time) time.Duration {
	c.Postponed++
	c.stopped(ctx, refused, c.latest(refused.Reason), now, 0)
	n := 0
	if p := c.Pending; p != nil && refused.Reason != reason.BreakerOpen {
		n = p.Refused
		p.Refused++
	}
	least, more := time.Second, min(2*time.Second<<min(n, 8), 5*time.Minute)
	if b := c.r.Breaker(); refused.Reason == reason.BreakerOpen && b != nil {
		least = max(b.Wait(now), time.Second)
		more = least / 4
	}
	wait := c.spread(least, more)
	if c.Pending != nil && !c.Pending.Until.IsZero() {
		wait = max(wait, c.Pending.Until.Sub(now))
	}
	return wait
}

// Earned returns a channel that is closed when the dependency next succeeds, and
// with it earns retries beyond the budget's share: then it is worth asking again.
// Take it before asking, so that no success is missed.
func (c *DurableCall) Earned() <-chan struct{} { return c.r.Edge(key).Earning() }

// GiveUp ends a call that waits, for a reason of its caller's, and returns the
// error to end with.
func (c *DurableCall) GiveUp(ctx context.Context, why forbear.Reason, now time.Time) *forbear.Error {
	d := c.end(ctx, why, now)
	return c.Err(d, now)
}

// Err returns the error of a call that d has ended.
func (c *DurableCall) Err(d forbear.Decision, now time.Time) *forbear.Error {
	e := &forbear.Error{Type: c.latest(d.Reason).Type, Attempts: c.Attempts, Elapsed: c.elapsed(now), Err: c.failure.Err}
	if d.Reason == reason.HintTooLong {
		e.RetryAfter = c.failure.Hint.Floor
	}
	return c.r.Edge(key).Err(e, d, now)
}

// latest returns the latest failure, as far as it is known: an earlier process may
// have seen it. A call that has not failed has why instead.
func (c *DurableCall) latest(why forbear.Reason) forbear.Failure {
	switch {
	case c.failure.Type != "":
		return c.failure
	case c.Pending != nil:
		return forbear.Failure{Class: c.Pending.Class, Type: c.Pending.Type}
	case c.Last != "":
		return forbear.Failure{Type: c.Last}
	}
	return forbear.Failure{Type: why.String()}
}

// end ends the call for a reason that is not a failure's. A retry that was granted
// and will not be sent goes back to the budget.
func (c *DurableCall) end(ctx context.Context, why forbear.Reason, now time.Time) forbear.Decision {
	c.takeBack(now)
	f := c.latest(why)
	d := forbear.Decision{Reason: why, Class: f.Class}
	if why == reason.Budget {
		d.Level = c.r.Level(now)
	}
	return c.decided(ctx, d, f, now)
}

// decided reports what follows failure f, and returns it. A refusal of the moment is
// reported when it is acted on: see Postpone.
func (c *DurableCall) decided(ctx context.Context, d forbear.Decision, f forbear.Failure, now time.Time) forbear.Decision {
	e := c.r.Edge(key)
	switch {
	case d.Retry:
		c.granted, c.free = d, e.Free(d)
		if n := len(c.listed); n > 0 { // it may have been postponed before
			c.listed[n-1].Reason, c.listed[n-1].Wait = d.Reason, d.Wait
		}
		e.Scheduled(ctx, c.info(c.Attempts+1), d, f)
	case !d.Reason.Momentary():
		e.Over(ctx, d)
		c.stopped(ctx, d, f, now, c.Attempts)
	}
	return d
}

// stopped reports that no retry follows failure f; made is 0 for one that is only
// postponed.
func (c *DurableCall) stopped(ctx context.Context, d forbear.Decision, f forbear.Failure, now time.Time, made int) {
	c.r.Edge(key).Stopped(ctx, c.info(c.Attempts), d, f, c.elapsed(now), made)
}

// elapsed returns how long the call has taken so far; 0 for one that was never let
// in, which has not begun.
func (c *DurableCall) elapsed(now time.Time) time.Duration {
	if c.State.Start.IsZero() {
		return 0
	}
	return now.Sub(c.State.Start)
}

// info returns what the events of the call have in common.
func (c *DurableCall) info(attempt int) forbear.Info {
	i := c.r.Edge(key).Info(&c.State, c.correlation, max(attempt, 1))
	i.Failed = c.listed
	return i
}
