package edge

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
)

// Try makes the attempt under way as forbear.Retryer.Do does, and decides what follows.
// It bounds the attempt by what is left of the policy's total, and by its per-attempt
// timeout: work of kind Event and Webhook always, other work when the policy sets one.
// A panic of op is an error that is final, and so is its end by runtime.Goexit, which
// ends the caller too. The decision's reason is [reason.Success] when the call is over;
// the error is op's. Durable work whose ctx ended is released: it may ask again. So is
// durable work of which op could do nothing, since another dependency's breaker was
// open: the decision says when to ask again, and no attempt is used up.
func (c *DurableCall) Try(ctx context.Context, op func(context.Context) error) (forbear.Decision, error) {
	began := time.Now()
	returned := false
	defer func() {
		if !returned { // Goexit
			c.Fail(ctx, c.r.Edge(key).Classify(ctx, panicked("runtime.Goexit")), time.Since(began), time.Now())
		}
	}()
	err := c.attempt(ctx, began, op)
	returned = true
	now := time.Now()
	if err == nil {
		c.Succeed(ctx, now.Sub(began), now)
		return forbear.Decision{Reason: reason.Success, Class: forbear.ClassSuccess}, nil
	}
	f := c.r.Edge(key).Classify(ctx, err)
	if f.Class == forbear.ClassCanceled && c.kind().Durable() {
		c.Release()
		return forbear.Decision{Reason: reason.Canceled, Class: f.Class}, err
	}
	if d := c.refusedElsewhere(ctx, err, &f, now); d.Retry {
		return d, err
	}
	c.State.ExhaustedBelow = ExhaustedBelow(err)
	return c.Fail(ctx, f, now.Sub(began), now), err
}

// attempt runs op once.
func (c *DurableCall) attempt(ctx context.Context, now time.Time, op func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	number := 1
	bound := c.Timeout(now)
	if !c.kind().Durable() {
		number = c.Attempts + 1
		if c.r.Edge(key).Policy().PerAttempt == 0 {
			bound = max(c.remaining(now), 1)
		}
	}
	return c.r.Edge(key).Run(ctx, number, now, bound, op)
}

// refusedElsewhere postpones durable work that met the open breaker of another
// dependency, or its like, before anything was sent there: until that lets something
// through and up to a quarter more, at least a second. Any other failure has a zero
// Decision.
func (c *DurableCall) refusedElsewhere(ctx context.Context, err error, f *forbear.Failure, now time.Time) forbear.Decision {
	e := c.r.Edge(key).Elsewhere(err)
	if e == nil || e.Attempts > 0 || !e.Reason.Momentary() || !c.kind().Durable() {
		return forbear.Decision{}
	}
	c.Release()
	c.Postponed++
	c.stopped(ctx, forbear.Decision{Reason: e.Reason, Class: f.Class}, *f, now, 0)
	least := max(e.Until.Sub(now), time.Second)
	return forbear.Decision{Retry: true, Reason: e.Reason, Class: f.Class, Wait: c.spread(least, least/4)}
}

// spread returns least and up to so much more.
func (c *DurableCall) spread(least, more time.Duration) time.Duration {
	return least + time.Duration(c.r.Edge(key).Rand()*float64(more))
}
