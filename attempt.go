package forbear

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/window"
)

// attemptContext is the context of one attempt of [Retryer.Do]: the caller's, with
// the end of the attempt's time or of the call's as its deadline, and over
// when the attempt is. Timer and channel are made when the operation first waits
// for the end, or derives a context; one that does neither costs next to nothing.
//
// One that is kept beyond its attempt still gives the same answers, with its own values,
// so it is never used again.
type attemptContext struct {
	context.Context               // the caller's
	until           time.Duration // since the windows' epoch
	inner           atomic.Pointer[innerContext]
}

// innerContext is the standard library's context beneath an [attemptContext].
type innerContext struct {
	context.Context
	cancel context.CancelFunc
}

// errAttemptTimeout is the cause of a context whose attempt ran out of time.
var errAttemptTimeout = fmt.Errorf("attempt timed out: %w", context.DeadlineExceeded)

// ended stands beneath attempts that were over before anyone waited for their end.
var ended = func() *innerContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &innerContext{ctx, cancel}
}()

// slabSize is how many contexts share an allocation. One that is kept keeps its
// neighbours' parents from the garbage collector, too: no more than seven.
const slabSize = 8

type slab struct {
	used     int
	contexts [slabSize]attemptContext
}

// slabs holds contexts that were never used.
var slabs = sync.Pool{New: func() any { return new(slab) }}

// newAttemptContext returns a context under ctx that ends at the given time, since
// the windows' epoch.
func newAttemptContext(ctx context.Context, until time.Duration) *attemptContext {
	s := slabs.Get().(*slab)
	c := &s.contexts[s.used]
	if s.used++; s.used < slabSize {
		slabs.Put(s)
	}
	c.Context, c.until = ctx, until
	return c
}

// Deadline implements [context.Context].
func (c *attemptContext) Deadline() (time.Time, bool) {
	theirs, _ := c.Context.Deadline()
	return earlier(window.Epoch().Add(c.until), theirs), true
}

// Done implements [context.Context].
func (c *attemptContext) Done() <-chan struct{} { return c.make().Done() }

// Err implements [context.Context]. The end that it has seen is kept by inner.
func (c *attemptContext) Err() error {
	inner := c.inner.Load()
	if inner == nil {
		if c.Context.Err() == nil && time.Since(window.Epoch()) < c.until {
			return nil
		}
		inner = c.make()
	}
	return inner.Err()
}

// Value implements [context.Context]. It leads the standard library to inner, so
// that derived contexts need no goroutine to learn of the end.
func (c *attemptContext) Value(key any) any {
	if inner := c.inner.Load(); inner != nil && inner != ended {
		return inner.Value(key)
	}
	return c.Context.Value(key)
}

// make returns the inner context, which it makes when there is none.
func (c *attemptContext) make() *innerContext {
	if inner := c.inner.Load(); inner != nil {
		return inner
	}
	ctx, cancel := context.WithDeadlineCause(c.Context, window.Epoch().Add(c.until), errAttemptTimeout)
	inner := &innerContext{ctx, cancel}
	if !c.inner.CompareAndSwap(nil, inner) {
		cancel() // another goroutine, or the end, was first
	}
	return c.inner.Load()
}

// end ends the context, unless it has ended before.
func (c *attemptContext) end() {
	if !c.inner.CompareAndSwap(nil, ended) {
		c.inner.Load().cancel()
	}
}

// run runs op under c. A timeout that is due to c's own time is marked as such.
func (c *attemptContext) run(op func(context.Context) error) error {
	defer c.end()
	err := op(c)
	if _, marked := err.(*mark); marked {
		return err // the operation knows what it was, and the clock costs time
	}
	if err != nil && c.timedOut() {
		if _, _, ok := timeout(err); ok {
			return &attemptTimeout{err}
		}
	}
	return err
}

// timedOut reports whether c's own time ended it. An operation may know that time by
// Deadline alone.
func (c *attemptContext) timedOut() bool {
	inner := c.inner.Load()
	if inner == nil {
		if time.Since(window.Epoch()) < c.until {
			return false
		}
		inner = c.make()
	}
	return context.Cause(inner) == errAttemptTimeout
}

// retryContext is the context of an attempt after the first, with its number.
type retryContext struct {
	number layer.Attempt
	time   attemptContext
}
