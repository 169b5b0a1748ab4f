package idempotency

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// Transactor is a store with a transaction mode.
type Transactor interface {
	Store
	// Transact claims in a transaction of its own and, when that is granted,
	// calls run in it. A response is stored and committed with everything that
	// run wrote; nil, or an error, rolls all of it back. A duplicate of a run
	// under way is refused at once and holds no connection.
	Transact(ctx context.Context, c Claim, run func(ctx context.Context, tx *sql.Tx, rec Record) (*Response, error)) (Verdict, error)
}

// Tx returns the transaction that a run of [Options.Transaction] is part of.
// Nil outside of one. The handler neither commits nor rolls it back.
func Tx(ctx context.Context) *sql.Tx { return runOf(ctx).tx }

// errRollback ends a transaction whose run has no response to store.
var errRollback = errors.New("rolled back")

// transact is serve in one transaction. A response that is too large is held
// back whole, since the commit comes first.
func (x *keyedRequest) transact(c Claim) {
	h := x.h
	start := time.Now()
	for {
		var out *recorder
		var u *run
		ctx, cancel := context.WithTimeout(x.ctx, h.MaxRun)
		v, err := h.store.(Transactor).Transact(ctx, c, func(ctx context.Context, tx *sql.Tx, rec Record) (*Response, error) {
			u = &run{token: Token{ID: c.ID, Owner: c.Owner, Fence: rec.Fence}, attempt: rec.Attempt, tx: tx}
			out = newRecorder(x.w, -1, false)
			x.call(ctx, u, out)
			out.WriteHeader(200)
			if x.disposition(u, out.status) != Keep {
				return nil, errRollback
			}
			h.usual.took(c.Operation, u.took)
			a := out.stored(h.names, "")
			if int64(len(a.Body)) > h.MaxResponse {
				a.Body, a.Tombstone = nil, Oversize
			}
			return &a, nil
		})
		cancel()
		h.flights.landed(c.ID)
		switch {
		case out != nil && (err == nil || errors.Is(err, errRollback)):
			if x.disposition(u, out.status) == Hold {
				x.hold(c)
			}
			h.Observe(Event{Result: Executed, Attempt: u.attempt, Took: u.took, Waited: x.waited})
			out.send()
			return
		case u != nil && errors.Is(err, ErrFenced):
			x.fenced(u)
			return
		case err != nil:
			// Either all of it is committed or nothing: the same key is safe.
			x.storeFailed(err)
			return
		case v.Outcome != InProgress:
			x.respond(v)
			return
		}
		v.LeaseLeft = longestWait // no lease says how long a transaction takes
		if !x.again(c, v, start) {
			return
		}
	}
}

// hold holds the key of a run that was rolled back but may have had effects
// elsewhere.
func (x *keyedRequest) hold(c Claim) {
	c.Rerun = false
	err := wait.Persist(func() error {
		ctx, cancel := context.WithTimeout(x.ctx, endTimeout)
		defer cancel()
		v, err := x.h.store.Claim(ctx, c)
		if err != nil || v.Outcome != Acquired {
			return err
		}
		return x.h.store.Hold(ctx, Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}, noteUnknown)
	}, isFenced)
	if err != nil {
		x.h.Observe(Event{Result: StoreError, Waited: x.waited})
		x.h.Logger.LogAttrs(x.r.Context(), slog.LevelError, "idempotency: a key could not be held: its operation may run again",
			slog.String("operation", c.Operation), slog.String("key_digest", c.ID.Key), slog.String("error", err.Error()))
	}
}
