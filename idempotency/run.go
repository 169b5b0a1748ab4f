package idempotency

import (
	"context"
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
	claimed, lose := context.WithCancelCause(x.ctx)
	ctx, cancel := context.WithTimeout(claimed, h.MaxRun)
	u := &run{token: Token{ID: c.ID, Owner: c.Owner, Fence: rec.Fence}, attempt: rec.Attempt, claim: c}
	beat := h.heartbeat(ctx, u, lose)
	stop := func() { lose(nil); cancel(); beat() }
	defer stop()

	out := newRecorder(x.w, h.MaxResponse, h.Stream)
	out.open = func(tombstone string) bool { return x.open(u, out, tombstone) }
	returned := false
	defer func() {
		if !returned { // a panic, which goes on to what recovers it
			x.panicked(u)
		}
		h.flights.landed(c.ID)
	}()
	x.call(ctx, u, out)
	returned = true
	stop()
	if out.WriteHeader(200); x.disposition(u, out.status) == Keep {
		h.usual.took(c.Operation, u.took)
	}
	x.finish(u, out)
}

// call calls the handler, and measures it.
func (x *keyedRequest) call(ctx context.Context, u *run, out *recorder) {
	start := time.Now()
	defer func() { u.took = time.Since(start) }()
	x.h.next.ServeHTTP(out, x.request(context.WithValue(ctx, runKey{}, u)))
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
	if out.lost || out.opened {
		x.afterOpen(u, out)
		return
	}
	d := x.disposition(u, out.status)
	var a Response
	switch d {
	case Keep:
		a = out.stored(h.names, "")
	case Hold:
		h.Logger.LogAttrs(x.r.Context(), slog.LevelWarn, "idempotency: outcome unknown, key held: resolve it with forbear keys settle", slog.String("operation", operation(x.r)))
	case Retry:
	}
	if !x.end(u, d, a, noteUnknown) {
		x.fenced(u)
		return
	}
	// When the end could not be stored the response is true all the same. The
	// backlog keeps it; without room there the record stays started, no duplicate
	// runs, and when the lease is over it is held.
	out.send()
}

// noteUnknown is the note of a record that its handler wants held.
const noteUnknown = "the handler does not know the outcome"

// open stores the tombstone of a response that goes out as it is written. One
// that is not to be kept needs none.
func (x *keyedRequest) open(u *run, out *recorder, tombstone string) bool {
	if x.disposition(u, out.status) != Keep {
		return true
	}
	return x.end(u, Keep, out.stored(x.h.names, tombstone), "")
}

// afterOpen ends a run whose response has gone out, or is not to.
func (x *keyedRequest) afterOpen(u *run, out *recorder) {
	if out.lost {
		x.fenced(u)
		return
	}
	if d := x.disposition(u, out.status); d != Keep { // of Keep the tombstone is there
		x.end(u, d, Response{}, noteUnknown)
	}
}

// panicked ends a run that did: a known end, unless it is past the point of no
// return or says itself that the outcome is unknown.
func (x *keyedRequest) panicked(u *run) {
	d := Retry
	if f, marked := u.marked(); marked && f != Retry {
		d = Hold
	}
	x.end(u, d, Response{}, "panic after the work may have been done")
}

// end ends a run, and observes what came of it. It reports whether the claim was
// still the run's.
func (x *keyedRequest) end(u *run, d Disposition, a Response, note string) bool {
	e := u.claim.Ends(Record{Fence: u.token.Fence}, d)
	if e.Response = a; d == Hold {
		e.Note = note
	}
	deferred, err := x.h.Backlog.End(x.ctx, e)
	result := Executed
	switch {
	case isFenced(err):
		return false
	case err != nil:
		result = StoreError
	case deferred:
		result = Deferred
	}
	x.h.Observe(Event{Result: result, Attempt: u.attempt, Took: u.took, Waited: x.waited})
	return true
}

// fenced responds for a run whose claim has passed to another: its own response is
// not the one that counts.
func (x *keyedRequest) fenced(u *run) {
	x.h.Logger.LogAttrs(x.r.Context(), slog.LevelWarn, "idempotency: another run has taken over this key: this response is dropped", slog.String("operation", operation(x.r)))
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

// heartbeat renews the lease of a run every third of it, and ends the run's context by
// lose when the claim has passed to another, or may have. stop ends the beats; a run that
// ends before the first one costs a timer.
func (h *handler) heartbeat(ctx context.Context, u *run, lose context.CancelCauseFunc) (stop func()) {
	renewed := time.Now()
	return wait.Every(h.Lease/3, func() time.Duration {
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, h.Lease/3)
		err := h.store.Renew(limited, u.token, h.Lease)
		cancel()
		if errors.Is(err, ErrFenced) || err != nil && u.claim.Rerun && time.Since(renewed) > h.Lease {
			lose(ErrFenced)
			return 0
		}
		next := time.Until(asked.Add(h.Lease / 3))
		if err == nil {
			renewed = asked
		} else {
			// Sooner than the next beat: when the store is back the lease may be over, and
			// the next claim elsewhere would find the key abandoned.
			next = min(next, wait.Jitter(h.Lease/6))
		}
		return max(next, time.Millisecond)
	})
}
