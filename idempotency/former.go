package idempotency

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// noteFormer is the note of a key that is held because of what an earlier version stored.
const noteFormer = "an earlier version stored this key without its place: it may belong to another one"

// former looks for the record of the request where an earlier version kept it, when the
// claim of its place has just been granted. What is found is moved to the place, so that it
// is looked for once; the request is then responded to, and former returns true.
func (x *keyedRequest) former(c Claim, rec Record) (found bool) {
	if x.h.Former == nil {
		return false
	}
	scope, sure := x.h.Former(x.scope)
	if scope = ScopeOf(scope); scope == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(x.ctx, x.h.StoreTimeout)
	defer cancel()
	old, err := x.h.store.Get(ctx, ID{Scope: scope, Key: c.ID.Key})
	if errors.Is(err, ErrNotFound) {
		return false
	}
	outcome, left := Refused, time.Duration(0)
	if err == nil {
		now := rec.LeaseEnd.Add(-c.Lease) // the store's
		old, outcome = c.Against(&old, now)
		left = old.LeaseEnd.Sub(now)
		if outcome == Acquired || outcome == Mismatch {
			return false // it is over, or another operation's
		}
		err = x.move(ctx, Token{ID: c.ID, Owner: c.Owner, Fence: rec.Fence}, outcome, &old, sure, now)
	}
	x.h.flights.landed(c.ID)
	switch {
	case err != nil:
		go x.h.takeBack(Token{ID: c.ID, Owner: c.Owner})
		x.storeFailed(err)
	case outcome == InProgress:
		x.refuse(busy(x.h.retryAfter(c.Operation, x.waited, left)), Busy)
	case outcome == Replay && sure:
		x.replay(old.Response)
	default:
		x.refuse(unknownOutcome, OutcomeHeld)
	}
	return true
}

// move ends the claim t as the record old says.
func (x *keyedRequest) move(ctx context.Context, t Token, outcome ClaimOutcome, old *Record, sure bool, now time.Time) error {
	switch {
	case outcome == InProgress: // a process of the earlier version works on it
		return x.h.store.Release(ctx, t)
	case outcome == Replay && sure && old.Response != nil:
		return x.h.store.Complete(ctx, t, *old.Response, old.Expires.Sub(now))
	}
	x.h.Logger.LogAttrs(ctx, slog.LevelWarn, "idempotency: key held because of a record of an earlier version: resolve it with forbear keys settle", slog.String("operation", old.Operation))
	return x.h.store.Hold(ctx, t, noteFormer)
}
