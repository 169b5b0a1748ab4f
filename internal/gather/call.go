package gather

import (
	"context"
	"sync/atomic"
	"time"
)

// Call is an argument on its way, and the place of its result.
type Call[A, R any] struct {
	// Ctx is the caller's, who may leave: that ends the wait, and not the batch.
	Ctx context.Context //nolint:containedctx // see above
	Arg A

	result R
	done   chan error
	over   atomic.Bool // the result was handed over, or the caller has left
}

// End hands the result to the caller, and reports whether it was still there. It
// is called once.
func (c *Call[A, R]) End(result R, err error) bool {
	c.result = result
	c.done <- err // it has room
	return c.over.CompareAndSwap(false, true)
}

// Calls are batches of calls, each of which has a result. It is safe for
// concurrent use.
type Calls[A, R any] struct{ Batches[*Call[A, R]] }

// Ask adds arg, of a size in bytes, to the batch that goes next and waits for its
// result, or until ctx ends: then it may still happen.
func (c *Calls[A, R]) Ask(ctx context.Context, arg A, size int) (result R, err error) {
	call := &Call[A, R]{Ctx: ctx, Arg: arg, done: make(chan error, 1)}
	c.Add(call, size)
	select {
	case err := <-call.done:
		return call.result, err
	case <-ctx.Done():
		if call.over.CompareAndSwap(false, true) {
			return result, context.Cause(ctx)
		}
		return call.result, <-call.done // which came first
	}
}

// Present returns the calls whose callers have not left.
func Present[A, R any](batch []*Call[A, R]) (left []*Call[A, R]) {
	for _, c := range batch {
		if c.Ctx.Err() == nil {
			left = append(left, c)
		}
	}
	return left
}

// Lasting returns a context for a batch: it ends when the last of the callers
// would leave, and after most at the latest.
func Lasting[A, R any](batch []*Call[A, R], most time.Duration) (context.Context, context.CancelFunc) {
	end, latest := time.Now().Add(most), time.Time{}
	for _, c := range batch {
		d, ok := c.Ctx.Deadline()
		if !ok || d.After(end) {
			d = end
		}
		if d.After(latest) {
			latest = d
		}
	}
	return context.WithDeadline(context.Background(), latest)
}
