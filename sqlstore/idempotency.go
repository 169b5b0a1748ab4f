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

// Idempotency is the store's side of package idempotency: it implements
// idempotency.Store. Make it with [Store.Idempotency]. It is safe for
// concurrent use.
type Idempotency struct{ s *Store }

// Idempotency returns the idempotency records of the database.
func (s *Store) Idempotency() *Idempotency { return &Idempotency{s} }

// The states of a record.
var recordStates = []idempotency.State{1: idempotency.Started, 2: idempotency.Completed, 3: idempotency.Released, 4: idempotency.Held}

const (
	rowExpired   = `(r.expires <= {t} AND (r.state IN (2, 3) OR r.state = 1 AND r.rerun = 1))`
	rowAbandoned = `(state = 1 AND rerun = 0 AND lease <= {t})`
	rowHeldBy    = ` WHERE scope = ? AND hash = ? AND owner = ? AND (fence = ? OR CAST(? AS BIGINT) = 0) AND state IN (1, 4)`
)

// single runs f: on SQLite in the group commit, on PostgreSQL on a connection
// of the pool, each statement for itself. There the database groups commits,
// and a group of ours would lock many keys in any order.
func single[T any](ctx context.Context, s *Store, f func(*tx) (T, error)) (T, error) {
	var zero T
	if !s.d.postgres {
		return do(ctx, s, f)
	}
	conn, err := s.reads.Conn(ctx)
	if err != nil {
		return zero, err
	}
	defer func() { _ = conn.Close() }()
	return f(&tx{ctx: ctx, s: s, d: s.d, conn: conn})
}

// Claim implements idempotency.Store.
func (i *Idempotency) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	return single(ctx, i.s, func(t *tx) (idempotency.Verdict, error) { return i.s.claimKey(t, c) })
}

// claimTries bounds the claims of a record that changes between the two
// statements of one.
const claimTries = 5

var errUnsettled = errors.New("idempotency record changes too quickly")

func (s *Store) claimKey(t *tx, c idempotency.Claim) (v idempotency.Verdict, err error) {
	//forbear:ignore FB1001 no call has failed: another process has changed the record between two statements
	for range claimTries {
		rec, granted, err := t.insertClaim(c)
		if err != nil {
			return v, err
		}
		if granted {
			return idempotency.Verdict{Outcome: idempotency.Acquired, Record: rec, LeaseLeft: c.Lease}, nil
		}
		rec, now, err := s.readRecord(t, c.ID)
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // swept in between
		}
		if err != nil {
			return v, err
		}
		held := rec.State == idempotency.Held
		next, outcome := c.Against(&rec, now)
		if outcome == idempotency.Acquired {
			continue // ended in between
		}
		if outcome == idempotency.Unknown && !held {
			n, err := t.exec(`UPDATE forbear_idempotency SET state = 4, note = ? WHERE scope = ? AND hash = ? AND owner = ? AND `+rowAbandoned,
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
	return v, own(errUnsettled)
}

// insertClaim is the one statement of a claim that is granted. Its condition is
// that of idempotency.Claim.Against.
func (t *tx) insertClaim(c idempotency.Claim) (rec idempotency.Record, granted bool, err error) {
	rerun := 0
	if c.Rerun {
		rerun = 1
	}
	var lease, created, expires int64
	rec = idempotency.Record{ID: c.ID, Fingerprint: c.Fingerprint, Operation: c.Operation, State: idempotency.Started, Rerun: c.Rerun, Owner: c.Owner}
	granted, err = t.row([]any{&rec.Fence, &rec.Attempt, &lease, &created, &expires},
		`INSERT INTO forbear_idempotency AS r (scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, expires)
		VALUES (?, ?, ?, ?, 1, ?, ?, 1, 1, {t}, {t}, {t})
		ON CONFLICT (scope, hash) DO UPDATE SET fingerprint = EXCLUDED.fingerprint, operation = EXCLUDED.operation, state = 1, rerun = EXCLUDED.rerun, owner = EXCLUDED.owner,
			fence = r.fence + 1, attempt = CASE WHEN `+rowExpired+` THEN 1 ELSE r.attempt + 1 END, lease = EXCLUDED.lease,
			created = CASE WHEN `+rowExpired+` THEN EXCLUDED.created ELSE r.created END, completed = NULL, expires = EXCLUDED.expires,
			status = NULL, header = NULL, body = NULL, tombstone = '', note = ''
		WHERE `+rowExpired+` OR r.fingerprint = EXCLUDED.fingerprint AND (r.state = 3 OR r.state = 1 AND r.lease <= {t} AND r.rerun = 1 AND EXCLUDED.rerun = 1)
		RETURNING fence, attempt, lease, created, expires`,
		c.ID.Scope, c.ID.Key, c.Fingerprint, c.Operation, rerun, c.Owner, after(c.Lease), after(0), after(c.Lease+c.Retention),
		after(0), after(0), after(0), after(0))
	rec.LeaseEnd, rec.Created, rec.Expires = at(lease), at(created), at(expires)
	return rec, granted, err
}

const recordColumns = `scope, hash, fingerprint, operation, state, rerun, owner, fence, attempt, lease, created, COALESCE(completed, 0), expires, COALESCE(status, 0), COALESCE(header, ''), tombstone, note`

// readRecord returns a record and the store's time.
func (s *Store) readRecord(t *tx, id idempotency.ID) (rec idempotency.Record, now time.Time, err error) {
	rows, err := t.query(`SELECT `+recordColumns+`, body, {t} FROM forbear_idempotency WHERE scope = ? AND hash = ?`, after(0), id.Scope, id.Key)
	if err != nil {
		return rec, now, err
	}
	err = idempotency.ErrNotFound
	scan := each(rows, func(r *sql.Rows) error {
		var body []byte
		var us int64
		rec, err = s.scanRecord(r, &body, &us)
		now = at(us)
		if err == nil && rec.Answer != nil {
			rec.Answer.Body, err = s.openBody(body)
		}
		return err
	})
	if scan != nil {
		return rec, now, scan
	}
	if err != nil {
		return rec, now, own(err)
	}
	return rec, now, nil
}

func (s *Store) openBody(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, nil
	}
	return s.unseal(body)
}

func (s *Store) scanRecord(r *sql.Rows, more ...any) (rec idempotency.Record, err error) {
	var state, rerun, status int
	var lease, created, completed, expires int64
	var header, tombstone string
	dest := []any{
		&rec.ID.Scope, &rec.ID.Key, &rec.Fingerprint, &rec.Operation, &state, &rerun, &rec.Owner, &rec.Fence, &rec.Attempt,
		&lease, &created, &completed, &expires, &status, &header, &tombstone, &rec.Note,
	}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return rec, err
	}
	if state < 1 || state >= len(recordStates) {
		return rec, fmt.Errorf("idempotency record has state %d", state)
	}
	rec.State, rec.Rerun = recordStates[state], rerun != 0
	rec.LeaseEnd, rec.Created, rec.Completed, rec.Expires = at(lease), at(created), at(completed), at(expires)
	if rec.State == idempotency.Completed {
		rec.Answer = &idempotency.Answer{Status: status, Tombstone: tombstone}
		plain, err := s.unsealText(header)
		if err != nil {
			return rec, err
		}
		if len(plain) > 0 {
			err = json.Unmarshal(plain, &rec.Answer.Header)
		}
		return rec, err
	}
	return rec, nil
}

// update runs a statement on the record that k holds.
func (i *Idempotency) update(ctx context.Context, k idempotency.Token, set string, args ...any) error {
	_, err := single(ctx, i.s, func(t *tx) (struct{}, error) { return struct{}{}, t.updateHeld(k, set, args...) })
	return err
}

func (t *tx) updateHeld(k idempotency.Token, set string, args ...any) error {
	all := append(append([]any{}, args...), k.ID.Scope, k.ID.Key, k.Owner, k.Fence, k.Fence)
	n, err := t.exec(`UPDATE forbear_idempotency SET `+set+rowHeldBy, all...)
	if err == nil && n == 0 {
		return own(idempotency.ErrFenced)
	}
	return err
}

// Renew implements idempotency.Store.
func (i *Idempotency) Renew(ctx context.Context, k idempotency.Token, lease time.Duration) error {
	return i.update(ctx, k, `state = 1, note = '', expires = expires + ({t} - lease), lease = {t}`, after(lease), after(lease))
}

const setCompleted = `state = 2, note = '', status = ?, header = ?, body = ?, tombstone = ?, completed = {t}, expires = {t}`

// Complete implements idempotency.Store.
func (i *Idempotency) Complete(ctx context.Context, k idempotency.Token, a idempotency.Answer, retention time.Duration) error {
	header, body, err := i.s.sealAnswer(a)
	if err != nil {
		return err
	}
	return i.update(ctx, k, setCompleted, a.Status, header, body, a.Tombstone, after(0), after(retention))
}

func (s *Store) sealAnswer(a idempotency.Answer) (header string, body []byte, err error) {
	plain, err := json.Marshal(a.Header)
	if err != nil {
		return "", nil, err
	}
	if header, err = s.sealText(plain); err != nil || len(a.Body) == 0 {
		return header, []byte{}, err
	}
	body, err = s.seal(a.Body)
	return header, body, err
}

// Release implements idempotency.Store.
func (i *Idempotency) Release(ctx context.Context, k idempotency.Token) error {
	return i.update(ctx, k, `state = 3, note = ''`)
}

// Hold implements idempotency.Store.
func (i *Idempotency) Hold(ctx context.Context, k idempotency.Token, why string) error {
	return i.update(ctx, k, `state = 4, note = ?`, why)
}
