package consume

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/reason"
)

// maxLeft bounds the handlers that are left behind, and what they hold. Beyond it they
// keep their places.
const maxLeft = 64

// handled calls the handler on a goroutine of its own: runtime.Goexit in a handler, as
// test helpers call it, would otherwise end the adapter's goroutine. Like a panic, it is a
// final error. A handler that ignores the end of its context is left behind.
func (r *run) handled(ctx context.Context) error {
	end := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			v := recover()
			if v == nil && !returned {
				v = "runtime.Goexit"
			}
			if v != nil {
				err = forbear.Terminal(&edge.PanicError{Value: v, Stack: debug.Stack()})
			}
			end <- err
		}()
		err = r.c.handle(ctx, *r.e)
		returned = true
	}()
	// Not ctx.Done(): most handlers return soon, and some never ask for it.
	deadline, _ := ctx.Deadline()
	grace := time.NewTimer(time.Until(deadline) + r.c.Grace)
	defer grace.Stop()
	select {
	case err := <-end:
		return err
	case <-grace.C:
	case <-r.canceled:
		grace.Reset(min(time.Until(deadline), 0) + r.c.Grace)
		select {
		case err := <-end:
			return err
		case <-grace.C:
		}
	}
	<-ctx.Done() // by a timer of its own, which may be later
	if n := r.c.left.Add(1); n > maxLeft {
		r.c.left.Add(-1)
		r.told(ctx, "handler ignores the end of its context, as too many others do: it keeps its slot")
		return <-end
	}
	r.told(ctx, "handler ignores the end of its context: its slot is reused, its event is not handled elsewhere")
	r.late = end
	return fmt.Errorf("the handler continued for %v after its context ended: %w", r.c.Grace, ctx.Err())
}

// told writes an ERROR line about the event's handler.
func (r *run) told(ctx context.Context, text string) {
	r.c.Logger.LogAttrs(ctx, slog.LevelError, text, slog.String("group", r.c.Group), slog.String("event", r.e.ID), slog.String("source", r.e.Source),
		slog.Int("attempt", r.call.Attempts+1), slog.Duration("grace", r.c.Grace))
}

// leave releases the place of a run whose handler was left behind, and continues the run
// when the handler returns. Until then the event is under way, and is given to no other
// run. If the handler succeeds late the event is done; otherwise the engine's decision
// about the timed-out attempt stands. A transaction is rolled back already.
func (r *run) leave(ctx context.Context, d forbear.Decision, err error) Decision {
	due := time.Now().Add(d.Wait)
	ctx = slots.Without(ctx)
	go func() {
		defer r.c.left.Add(-1)
		defer r.over()
		if <-r.late == nil && !r.c.Transaction {
			d = forbear.Decision{Reason: reason.Success}
		}
		r.c.Observe(*r.e, r.after(ctx, d, err, time.Until(due)))
	}()
	return comeAgain(r.c.Lease, "deaf", err)
}

type attemptKey struct{}

type attemptInfo struct {
	number int
	fence  int64
}

// Attempt returns the number of the attempt that ctx is the handler's of; the
// first is 1. It is 0 elsewhere.
func Attempt(ctx context.Context) int {
	a, _ := ctx.Value(attemptKey{}).(attemptInfo)
	return a.number
}

// Fence returns a number that grows with each claim of the event. A handler
// that writes it with its effect, and refuses to write below a higher one,
// cannot be overtaken by a run of its own that was taken for dead. It is 0
// outside of handlers.
func Fence(ctx context.Context) int64 {
	a, _ := ctx.Value(attemptKey{}).(attemptInfo)
	return a.fence
}
