package forbear

import (
	"context"
	"errors"

	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/reason"
)

// Do calls op until it succeeds or fails in a way that a retry cannot help, or until the
// policy, the deadline or the budget stops it. op must be safe to repeat; it marks its own errors with
// [Retryable] and [Terminal]. Of the others Do retries what failed before anything was
// sent, and with [Idempotent] or Policy.Idempotent every network failure that may go
// away; an error that neither a classifier nor the network knows is not retried.
//
// What op is given ends when op returns, and at the policy's total or its
// per-attempt timeout at the latest. What lives on that context, such as the body of a
// response or the rows of a query, must be read in op. A first attempt that ctx itself
// bounds more closely runs under ctx; later ones carry their number.
//
// On failure the error is an [*Error] that unwraps to op's last error.
func (r *Retryer) Do(ctx context.Context, op func(ctx context.Context) error) error {
	if op == nil {
		return errNilFunc
	}
	var c call
	err := r.begin(ctx, &c)
	if err != nil {
		return err
	}
	if r.bulkhead != nil {
		defer c.leave() // a panic of op must not keep the place
	}
	if err = r.attempt(ctx, &c, op); err == nil {
		r.succeed(ctx, &c)
		return nil
	}
	return r.retry(ctx, &c, op, err)
}

// DoValue is [Retryer.Do] for an operation that returns a value. The value must not
// live on the operation's context, which is over by then.
func DoValue[T any](ctx context.Context, r *Retryer, op func(ctx context.Context) (T, error)) (T, error) {
	var v T
	if op == nil {
		return v, errNilFunc
	}
	err := r.Do(ctx, func(ctx context.Context) (err error) {
		v, err = op(ctx)
		return err
	})
	return v, err
}

// attempt runs op once.
func (r *Retryer) attempt(ctx context.Context, c *call, op func(context.Context) error) error {
	if !c.permit.Probe {
		return c.run(ctx, op)
	}
	// A panic must not keep the permit: with all of them gone the breaker would
	// never close again.
	panicked := true
	defer func() {
		if panicked {
			c.Aborted()
		}
	}()
	err := c.run(ctx, op)
	panicked = false
	return err
}

// succeed ends a call of Do. Without a timeout of its own an attempt is slow
// only if the policy says what slow is.
func (r *Retryer) succeed(ctx context.Context, c *call) {
	if r.policy.PerAttempt > 0 || r.given.Breaker.SlowCall > 0 {
		c.Succeed(ctx)
		return
	}
	c.succeedUntimed(ctx)
}

// retry is the slow path of Do: everything after a failed first attempt.
func (r *Retryer) retry(ctx context.Context, c *call, op func(context.Context) error, err error) error {
	for {
		f := r.classify(ctx, err)
		c.State.ExhaustedBelow = exhaustedBelow(err)
		d := c.Fail(ctx, f)
		if !d.Retry {
			return r.finish(ctx, c.Err(d, f))
		}
		if err := c.Wait(ctx, d, f); err != nil {
			return err
		}
		if err = r.attempt(ctx, c, op); err == nil {
			r.succeed(ctx, c)
			return nil
		}
	}
}

// finish hands the failed work of a durable kind to the dead-letter sink.
func (r *Retryer) finish(ctx context.Context, e *Error) error {
	if r.sink == nil || e.Reason == reason.Canceled {
		return e
	}
	if err := r.sink.DeadLetter(context.WithoutCancel(ctx), e); err != nil {
		return errors.Join(e, err)
	}
	queue := r.dependency
	if q, ok := r.sink.(interface{ Queue() string }); ok {
		queue = q.Queue()
	}
	r.deadLettered(ctx, queue, e.Reason)
	return e
}

// exhaustedBelow reports whether err holds the end of a call that a forbear below has
// given up, so that a synchronous layer above should not begin its own retries.
func exhaustedBelow(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Reason.Binding()
}

// run runs op within the time of the attempt under way: the policy's, if it sets
// one, and what is left of the whole. A first attempt that the caller bounds
// more closely runs under the caller's own context.
func (c *call) run(ctx context.Context, op func(context.Context) error) error {
	until := duration.Sum(c.began, c.r.policy.Total)
	if usual := c.r.policy.PerAttempt; usual > 0 {
		until = c.attempted + limit(usual, c.permit, until-c.attempted)
	} else if d, ok := ctx.Deadline(); ok && c.Attempt() == 1 && d.Sub(window.Epoch()) <= until {
		return op(ctx)
	}
	if c.Attempt() == 1 {
		return newAttemptContext(ctx, until).run(op)
	}
	if len(c.retries) == 0 {
		c.retries = make([]retryContext, 2) // most calls need no more
	}
	next := &c.retries[0]
	c.retries = c.retries[1:]
	c.r.number(ctx, &next.number, c.Attempt())
	next.time.Context, next.time.until = &next.number, until
	return next.time.run(op)
}
