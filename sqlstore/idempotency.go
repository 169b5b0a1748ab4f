package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// A record is one row, by principal and digest of the key. The key itself is not
// stored. Every write of a run names its owner and fence, so that a run whose
// lease has passed to another changes nothing.

// Idempotency is the view of a database that keeps idempotency records. It
// implements idempotency.Store. Make it with [DB.Idempotency]. It is safe for
// concurrent use.
type Idempotency struct{ db *DB }

// Idempotency returns the idempotency records of the database.
func (db *DB) Idempotency() *Idempotency { return &Idempotency{db} }

// recordStates are the states of a record by what their rows have.
var recordStates = map[rowState]idempotency.State{
	keyStarted: idempotency.Started, keyCompleted: idempotency.Completed, keyReleased: idempotency.Released, keyHeld: idempotency.Held,
}

// What statements say of a record's state, to set it or to ask for it.
const (
	recordStarted   = `state = ` + string(keyStarted)
	recordCompleted = `state = ` + string(keyCompleted)
	recordReleased  = `state = ` + string(keyReleased)
	recordHeld      = `state = ` + string(keyHeld)
	recordTaken     = `state IN (` + string(keyStarted) + `, ` + string(keyHeld) + `)` // as forbear_idempotency_held has it
	recordNotHeld   = `state <> ` + string(keyHeld)                                    // as forbear_idempotency_expires has it
)

// The conditions of the state machine, which idempotency.Claim.Against has in
// Go. One that is started and may not be rerun does not expire: it is held when
// its lease is over, for no one knows whether it happened.
const (
	rowExpired   = `(r.expires <= {t} AND (r.state IN (` + string(keyCompleted) + `, ` + string(keyReleased) + `) OR r.` + recordStarted + ` AND r.rerun = 1))`
	rowAbandoned = `(` + recordStarted + ` AND rerun = 0 AND lease <= {t})`
	rowHeldBy    = ` WHERE scope = ? AND hash = ? AND owner = ? AND (fence = ? OR CAST(? AS BIGINT) = 0) AND ` + recordTaken
)

// single runs f as a transaction of its own. f may still run when a caller has left.
func single[T any](ctx context.Context, db *DB, f func(*tx) (T, error)) (T, error) {
	return boxed(f, func(run func(*tx) error) error { return db.d.single(ctx, db, run) })
}

// Claim implements idempotency.Store. Where there are batches it goes with the next one.
func (i *Idempotency) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	if batches := &i.db.records.claims; batches.Do != nil && whole(c.ID.Scope, c.ID.Key, c.Fingerprint, c.Operation, c.Owner) {
		return batches.Ask(ctx, c, 0)
	}
	return single(ctx, i.db, func(t *tx) (idempotency.Verdict, error) { return t.claimRecord(c) })
}

// A record is claimed, renewed and ended by statements that each compare and
// write at once, so that no lock is held between them.

// claimTries bounds the claims of a record that changes between the two
// statements of one.
const claimTries = 5

// errUnsteady gives up a claim after that many.
var errUnsteady = errors.New("idempotency record keeps changing: try again")

// claimRecord grants a claim in one statement, or reads why it is not granted.
// Between the two statements the record may change: then it begins again.
func (t *tx) claimRecord(c idempotency.Claim) (v idempotency.Verdict, err error) {
	for range claimTries {
		// Granted: the one round trip that nearly all claims take.
		rec, granted, err := t.insertClaim(c)
		if err != nil {
			return v, err
		}
		if granted {
			return idempotency.Verdict{Outcome: idempotency.Acquired, Record: rec, LeaseLeft: c.Lease}, nil
		}
		rec, now, err := t.readRecord(c.ID)
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // swept in between
		}
		if err != nil {
			return v, err
		}
		// Against says what the claim gets; one that is abandoned becomes held,
		// which is written down before the caller learns it.
		held := rec.State == idempotency.Held
		next, outcome := c.Against(&rec, now)
		if outcome == idempotency.Acquired {
			continue // ended in between
		}
		if outcome == idempotency.Unknown && !held {
			n, err := t.exec(`UPDATE forbear_idempotency SET `+recordHeld+`, note = ? WHERE scope = ? AND hash = ? AND owner = ? AND `+rowAbandoned,
				idempotency.Abandoned, c.ID.Scope, c.ID.Key, rec.Owner, after(0))
			if err != nil {
				return v, err
			}
			if n == 0 {
				continue // renewed or ended in between
			}
		}
		return idempotency.Verdict{Outcome: outcome, Record: next, LeaseLeft: max(next.LeaseEnd.Sub(now), 0)}, nil
	}
	return v, own(errUnsteady)
}

// claimConflict is what becomes of a record that is there, if the claim is
// granted: the condition is that of idempotency.Claim.Against. Its arguments are
// four times the present.
const claimConflict = `ON CONFLICT (scope, hash) DO UPDATE SET fingerprint = EXCLUDED.fingerprint, operation = EXCLUDED.operation, ` + recordStarted + `, rerun = EXCLUDED.rerun, owner = EXCLUDED.owner,
			fence = r.fence + 1, attempt = CASE WHEN ` + rowExpired + ` THEN 1 ELSE r.attempt + 1 END, lease = EXCLUDED.lease, written = EXCLUDED.written,
			created = CASE WHEN ` + rowExpired + ` THEN EXCLUDED.created ELSE r.created END, completed = NULL, expires = EXCLUDED.expires,
			status = NULL, header = NULL, body = NULL, tombstone = '', note = ''
		WHERE ` + rowExpired + ` OR r.fingerprint = EXCLUDED.fingerprint AND (r.` + recordReleased + ` OR r.` + recordStarted + ` AND r.lease <= {t} AND r.rerun = 1 AND EXCLUDED.rerun = 1)`

// insertClaim is the one statement of a claim that is granted.
func (t *tx) insertClaim(c idempotency.Claim) (rec idempotency.Record, granted bool, err error) {
	// SMALLINT takes no boolean.
	rerun := 0
	if c.Rerun {
		rerun = 1
	}
	// The row has the times, by the store's clock, and the fence; the rest is the
	// claim's.
	var lease, created, expires int64
	rec = idempotency.Record{ID: c.ID, Fingerprint: c.Fingerprint, Operation: c.Operation, State: idempotency.Started, Rerun: c.Rerun, Owner: c.Owner}
	granted, err = t.row([]any{&rec.Fence, &rec.Attempt, &lease, &created, &expires},
		`INSERT INTO forbear_idempotency AS r (scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, expires, written)
		VALUES (?, ?, ?, ?, `+string(keyStarted)+`, ?, ?, 1, 1, {t}, {t}, {t}, {t})
		`+claimConflict+` RETURNING fence, attempt, lease, created, expires`,
		c.ID.Scope, c.ID.Key, c.Fingerprint, c.Operation, rerun, c.Owner, after(c.Lease), after(0), after(c.Lease+c.Retention), after(0),
		after(0), after(0), after(0), after(0))
	rec.LeaseEnd, rec.Created, rec.Expires = at(lease), at(created), at(expires)
	return rec, granted, err
}

// recordColumns are what scanRecord reads: all but the body, which lists do not
// show.
const recordColumns = `scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, COALESCE(completed, 0), expires, COALESCE(status, 0), COALESCE(header, ''), tombstone, note`

// readRecord returns a record and the store's time.
func (t *tx) readRecord(id idempotency.ID) (rec idempotency.Record, now time.Time, err error) {
	found := false
	err = t.each(func(r *sql.Rows) (err error) {
		found = true
		var us int64
		rec, err = t.db.scanWhole(r, &us)
		now = at(us)
		return err
	}, `SELECT `+recordColumns+`, body, {t} FROM forbear_idempotency WHERE scope = ? AND hash = ?`, after(0), id.Scope, id.Key)
	if err == nil && !found {
		err = own(idempotency.ErrNotFound)
	}
	return rec, now, err
}

// scanWhole reads a record with its body, which is the first column after the
// others.
func (db *DB) scanWhole(r *sql.Rows, more ...any) (rec idempotency.Record, err error) {
	var body []byte
	rec, err = db.scanRecord(r, append([]any{&body}, more...)...)
	if err == nil && rec.Response != nil && len(body) > 0 {
		rec.Response.Body, err = db.unseal(recordCell("body", rec.ID), body)
	}
	return rec, err
}

// scanRecord reads what a list shows: all but the body.
func (db *DB) scanRecord(r *sql.Rows, more ...any) (rec idempotency.Record, err error) {
	var state rowState
	var rerun, status int
	var lease, created, completed, expires int64
	var header, tombstone string
	dest := []any{
		&rec.ID.Scope, &rec.ID.Key, &rec.Fingerprint, &rec.Operation, &state, &rerun, &rec.Owner, &rec.Fence, &rec.Attempt,
		&lease, &created, &completed, &expires, &status, &header, &tombstone, &rec.Note,
	}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return rec, err
	}
	known := false
	if rec.State, known = recordStates[state]; !known {
		return rec, fmt.Errorf("idempotency record has state %s", state)
	}
	rec.Rerun = rerun != 0
	rec.LeaseEnd, rec.Created, rec.Completed, rec.Expires = at(lease), at(created), at(completed), at(expires)
	// Only a completed record has a response. One that is held may have columns
	// of an earlier run.
	if rec.State == idempotency.Completed {
		rec.Response = &idempotency.Response{Status: status, Tombstone: tombstone}
		plain, err := db.unsealText(recordCell("header", rec.ID), header)
		if err != nil {
			return rec, err
		}
		if len(plain) > 0 {
			err = json.Unmarshal(plain, &rec.Response.Header)
		}
		return rec, err
	}
	return rec, nil
}

// update runs a statement on the record that k holds.
func (i *Idempotency) update(ctx context.Context, k idempotency.Token, set string, args ...any) error {
	return i.db.d.single(ctx, i.db, func(t *tx) error { return t.updateHeld(k, set, args...) })
}

// updateHeld is update in a transaction that is there already. It copies its
// arguments, since a replay wants them as they were.
func (t *tx) updateHeld(k idempotency.Token, set string, args ...any) error {
	// The fence stands twice: 0 is any.
	all := append(append([]any{}, args...), k.ID.Scope, k.ID.Key, k.Owner, k.Fence, k.Fence)
	n, err := t.exec(`UPDATE forbear_idempotency SET `+set+rowHeldBy, all...)
	if err == nil && n == 0 {
		return own(idempotency.ErrFenced)
	}
	return err
}

// Renew implements idempotency.Store.
func (i *Idempotency) Renew(ctx context.Context, k idempotency.Token, lease time.Duration) error {
	return i.update(ctx, k, recordStarted+`, note = '', expires = expires + ({t} - lease), lease = {t}, written = {t}`, after(lease), after(lease), after(0))
}

// setCompleted stores the response and begins the retention.
const setCompleted = recordCompleted + `, note = '', status = ?, header = ?, body = ?, tombstone = ?, completed = {t}, expires = {t}`

// Complete implements idempotency.Store.
func (i *Idempotency) Complete(ctx context.Context, k idempotency.Token, a idempotency.Response, retention time.Duration) error {
	// Sealed before the transaction, for the writer's sake.
	header, body, err := i.db.sealResponse(k.ID, a)
	if err != nil {
		return err
	}
	c := completion{
		Scope: k.ID.Scope, Hash: k.ID.Key, Owner: k.Owner, Fence: k.Fence,
		Status: a.Status, Header: header, Body: body, Tombstone: a.Tombstone, Retention: retention.Microseconds(),
	}
	if batches := &i.db.records.completions; batches.Do != nil && whole(c.Scope, c.Hash, c.Owner, c.Header, c.Tombstone) {
		_, err = batches.Ask(ctx, c, len(header)+len(body))
	} else {
		_, err = single(ctx, i.db, func(t *tx) (struct{}, error) { return t.completeRecord(c) })
	}
	i.db.ended(k.ID, err)
	return err
}

// recordCell is where something sealed of a record belongs.
func recordCell(column string, id idempotency.ID) cell {
	return place("idempotency."+column, id.Scope, id.Key)
}

// sealResponse makes the columns of a stored response.
func (db *DB) sealResponse(id idempotency.ID, a idempotency.Response) (header string, body []byte, err error) {
	plain, err := json.Marshal(a.Header)
	if err != nil {
		return "", nil, err
	}
	if header, err = db.sealText(recordCell("header", id), plain); err != nil || len(a.Body) == 0 {
		return header, []byte{}, err
	}
	body, err = db.seal(recordCell("body", id), a.Body)
	return header, body, err
}

// setReleased ends a claim without a result.
const setReleased = recordReleased + `, note = ''`

// Release implements idempotency.Store.
func (i *Idempotency) Release(ctx context.Context, k idempotency.Token) error {
	err := i.update(ctx, k, setReleased)
	i.db.ended(k.ID, err)
	return err
}

// Hold implements idempotency.Store.
func (i *Idempotency) Hold(ctx context.Context, k idempotency.Token, why string) error {
	err := i.update(ctx, k, recordHeld+`, note = ?`, why)
	i.db.ended(k.ID, err)
	return err
}
