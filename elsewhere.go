package forbear

import (
	"context"
	"errors"
	"time"
)

// An operation may call other dependencies through Retryers of their own. This file
// is what their failures mean to the one around it: each breaker judges the dependency
// that it is named after, so that one dead mail server does not stop the work of all
// who write to the ledger and sometimes send a mail.

// elsewhere returns the end of a call to another dependency that err holds, or nil.
func (r *Retryer) elsewhere(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e.Dependency != r.dependency {
		return e
	}
	return nil
}

// refusedElsewhere puts durable work off that met the open breaker of another
// dependency, or its like, before anything was sent there: until that lets something
// through and up to a quarter more, at least a second. Any other failure has a zero
// Decision.
func (c *DurableCall) refusedElsewhere(ctx context.Context, err error, f *Failure, now time.Time) Decision {
	e := c.r.elsewhere(err)
	if e == nil || e.Attempts > 0 || !e.Reason.Momentary() || !c.r.policy.Kind.Durable() {
		return Decision{}
	}
	c.Release()
	c.Postponed++
	c.stopped(ctx, Decision{Reason: e.Reason, Class: f.Class}, *f, now, 0)
	least := max(e.Until.Sub(now), time.Second)
	return Decision{Retry: true, Reason: e.Reason, Class: f.Class, Wait: least + time.Duration(c.r.rand()*float64(least/4))}
}
