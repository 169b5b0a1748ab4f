package idempotency

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

const endTimeout = 2 * time.Second

// run runs the handler under the claim, and stores its response before the first
// byte of it goes out.
func (x *keyedRequest) run(c Claim, rec Record) {
	h := x.h
	ctx, end := context.WithCancelCause(x.ctx)
	u := &run{Context: ctx, deadline: time.Now().Add(h.MaxRun), token: Token{ID: c.ID, Owner: c.Owner, Fence: rec.Fence}, attempt: rec.Attempt}
	beat := h.heartbeat(u, c.Rerun, end)
	defer beat.stop()

	out := newRecorder(x.w, h.MaxResponse, h.Stream)
	out.open = func(tombstone string) bool { return x.open(u, out, tombstone) }
	returned := false
	defer func() {
		if !returned { // a panic, which goes on to what recovers it
			x.panicked(u)
		}
		h.flights.landed(c.ID)
	}()
	h.next.ServeHTTP(out, x.request(u))
	returned = true
	beat.stop()
	x.finish(u, out)
}

// disposition says what becomes of a run that has responded.
func (x *keyedRequest) disposition(u *run, status int) Disposition {
	if f, ok := u.marked(); ok {
		return f
	}
	return x.h.Disposition(status)
}

// finish ends the claim as the response demands, and sends it.
func (x *keyedRequest) finish(u *run, out *recorder) {
	h := x.h
	out.WriteHeader(200)
	if out.lost || out.opened {
		x.afterOpen(u, out)
		return
	}
	var err error
	switch x.disposition(u, out.status) {
	case Keep:
		a := out.stored(h.names, "")
		err = x.end(func(ctx context.Context) error { return h.store.Complete(ctx, u.token, a, h.Retention) })
	case Hold:
		err = x.end(func(ctx context.Context) error { return h.store.Hold(ctx, u.token, "the handler does not know") })
		h.Logger.LogAttrs(x.r.Context(), slog.LevelWarn, "idempotency: outcome unknown, key held", slog.String("operation", operation(x.r)))
	case Retry:
		err = x.end(func(ctx context.Context) error { return h.store.Release(ctx, u.token) })
	}
	if errors.Is(err, ErrFenced) {
		x.fenced(u)
		return
	}
	// When the end could not be stored the response is true all the same. The
	// record stays started, no duplicate runs, and when the lease is over it
	// is held.
	x.ended(u, err)
	out.send()
}

// open stores the tombstone of a response that goes out as it is written. One
// that is not to be kept needs none.
func (x *keyedRequest) open(u *run, out *recorder, tombstone string) bool {
	h := x.h
	if x.disposition(u, out.status) != Keep {
		return true
	}
	a := out.stored(h.names, tombstone)
	err := x.end(func(ctx context.Context) error { return h.store.Complete(ctx, u.token, a, h.Retention) })
	if errors.Is(err, ErrFenced) {
		return false
	}
	x.ended(u, err)
	return true
}

// afterOpen ends a run whose response has gone out, or is not to.
func (x *keyedRequest) afterOpen(u *run, out *recorder) {
	if out.lost {
		x.fenced(u)
		return
	}
	switch x.disposition(u, out.status) {
	case Retry:
		x.ended(u, x.end(func(ctx context.Context) error { return x.h.store.Release(ctx, u.token) }))
	case Hold:
		x.ended(u, x.end(func(ctx context.Context) error {
			return x.h.store.Hold(ctx, u.token, "the handler does not know")
		}))
	case Keep: // the tombstone is there
	}
}

// panicked ends a run that did: a known end, unless it is past the point of no
// return or says itself that the outcome is unknown.
func (x *keyedRequest) panicked(u *run) {
	f, marked := u.marked()
	err := x.end(func(ctx context.Context) error {
		if marked && f != Retry {
			return x.h.store.Hold(ctx, u.token, "panic after the work may have happened")
		}
		return x.h.store.Release(ctx, u.token)
	})
	x.ended(u, err)
}

// end tries to write the end of a run, on a context of its own: that the client
// has left is what idempotency is for.
func (x *keyedRequest) end(write func(ctx context.Context) error) error {
	return wait.Persist(func() error {
		ctx := limit(x.ctx, endTimeout)
		defer ctx.end()
		return write(ctx)
	}, isFenced)
}

// isFenced reports whether a write came too late for its claim, which no further
// try can mend.
func isFenced(err error) bool { return errors.Is(err, ErrFenced) }

// ended observes what came of a run.
func (x *keyedRequest) ended(u *run, err error) {
	if err == nil {
		x.h.Observe(Event{Result: Executed, Attempt: u.attempt, Waited: x.waited})
		return
	}
	if errors.Is(err, ErrFenced) {
		return
	}
	x.h.Observe(Event{Result: StoreError, Attempt: u.attempt, Waited: x.waited})
	x.h.Logger.LogAttrs(x.r.Context(), slog.LevelError, "idempotency: the end of a run could not be stored, its key stays taken",
		slog.String("operation", operation(x.r)), slog.String("error", err.Error()))
}

// fenced responds for a run whose claim has passed to another: its own response is
// not the one that counts.
func (x *keyedRequest) fenced(u *run) {
	x.h.Logger.LogAttrs(x.r.Context(), slog.LevelWarn, "idempotency: run lost its claim, its response is dropped", slog.String("operation", operation(x.r)))
	ctx, cancel := context.WithTimeout(x.ctx, endTimeout)
	defer cancel()
	rec, err := x.h.store.Get(ctx, u.token.ID)
	switch {
	case errors.Is(err, ErrNotFound): // rolled back, and no other has come
		x.refuse(storeDown, Fenced)
	case err != nil:
		x.refuse(storeDown, StoreError)
	case rec.State == Completed:
		x.replay(rec.Response)
	case rec.State == Held:
		x.refuse(unknownOutcome, Fenced)
	default:
		x.refuse(busy(time.Second), Fenced)
	}
}

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
			u = &run{Context: ctx, token: Token{ID: c.ID, Owner: c.Owner, Fence: rec.Fence}, attempt: rec.Attempt, tx: tx}
			out = newRecorder(x.w, -1, false)
			h.next.ServeHTTP(out, x.request(u))
			out.WriteHeader(200)
			if x.disposition(u, out.status) != Keep {
				return nil, errRollback
			}
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
			x.ended(u, nil)
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
		left := h.Wait - time.Since(start)
		again := left > 0 && x.wait(v, left)
		x.waited = time.Since(start)
		if !again {
			x.refuse(busy(time.Second), Busy)
			return
		}
	}
}

// hold holds the key of a run that was rolled back but may have had effects
// elsewhere.
func (x *keyedRequest) hold(c Claim) {
	c.Rerun = false
	err := x.end(func(ctx context.Context) error {
		v, err := x.h.store.Claim(ctx, c)
		if err != nil || v.Outcome != Acquired {
			return err
		}
		return x.h.store.Hold(ctx, Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}, "the handler does not know")
	})
	x.ended(&run{}, err)
}
