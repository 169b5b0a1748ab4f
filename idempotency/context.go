package idempotency

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// run is what the context of a handler carries.
type run struct {
	token   Token
	claim   Claim // zero in a transaction, which ends by its commit
	attempt int
	took    time.Duration // of the handler, once it is over
	mark    atomic.Int32  // 0: none, else 1 + a Disposition
	tx      *sql.Tx
}

// runKey is where a handler's context has its run.
type runKey struct{}

// runOf returns the run that ctx belongs to. Outside of one it is a run of no claim,
// whose marks are ignored.
func runOf(ctx context.Context) *run {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r
	}
	return &run{}
}

// Fence returns the fencing number of the run that ctx belongs to, for
// conditional writes elsewhere: a higher one is a later run of the same
// operation. It is 0 outside of a run.
func Fence(ctx context.Context) int64 { return runOf(ctx).token.Fence }

// Attempt returns how often the operation was begun, this run included, and 0
// outside of a run.
func Attempt(ctx context.Context) int { return runOf(ctx).attempt }

// MarkFinal says that the response stands, whatever its status: the work is past
// the point of no return. A panic after it is an unknown outcome.
func MarkFinal(ctx context.Context) { mark(ctx, Keep) }

// MarkUnknown says that the work may have happened: the key is held, and no
// duplicate runs.
func MarkUnknown(ctx context.Context) { mark(ctx, Hold) }

// MarkUndone says that the work did not happen, whatever the status: the next
// attempt runs.
func MarkUndone(ctx context.Context) { mark(ctx, Retry) }

// Marked returns what the run that ctx belongs to has been marked with. It is
// for transports whose responses have rules of their own.
func Marked(ctx context.Context) (f Disposition, ok bool) { return runOf(ctx).marked() }

// mark records what a handler says of its own run. The last word counts; outside
// of a run there is nothing to mark.
func mark(ctx context.Context, f Disposition) { runOf(ctx).mark.Store(1 + int32(f)) }

// marked returns what the handler has said, if anything.
func (r *run) marked() (f Disposition, ok bool) {
	if m := r.mark.Load(); m > 0 {
		return Disposition(m - 1), true
	}
	return 0, false
}
