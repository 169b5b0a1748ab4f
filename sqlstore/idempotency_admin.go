package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/idempotency"
)

// Get implements idempotency.Store.
func (i *Idempotency) Get(ctx context.Context, id idempotency.ID) (idempotency.Record, error) {
	scan := func(r *sql.Rows) (idempotency.Record, error) { return i.db.scanWhole(r) }
	list, err := readAll(ctx, i.db, scan, `SELECT `+recordColumns+`, body FROM forbear_idempotency WHERE scope = ? AND hash = ?`, id.Scope, id.Key)
	return first(list, err, idempotency.ErrNotFound)
}

// List implements idempotency.Store.
func (i *Idempotency) List(ctx context.Context, f idempotency.Filter) (list []idempotency.Record, err error) {
	where, args := []string{"1 = 1"}, []any{after(0)}
	if f.Scope != "" {
		where, args = append(where, "scope = ?"), append(args, f.Scope)
	}
	if f.Key != "" {
		where, args = append(where, "hash = ?"), append(args, f.Key)
	}
	// A row shows less than its state: one that is abandoned still says that it
	// is started, until a claim or an operator comes by.
	switch f.State {
	case "":
	case idempotency.Held:
		where, args = append(where, recordTaken+" AND ("+recordHeld+" OR "+rowAbandoned+")"), append(args, after(0))
	case idempotency.Started:
		where, args = append(where, recordStarted+" AND NOT "+rowAbandoned), append(args, after(0))
	default:
		where, args = append(where, "state = ?"), append(args, recordState(f.State))
	}
	if f.After != (idempotency.ID{}) {
		where, args = append(where, "(scope, hash) > (?, ?)"), append(args, f.After.Scope, f.After.Key)
	}
	err = i.db.each(ctx, func(r *sql.Rows) error {
		var now int64
		rec, err := i.db.scanRecord(r, &now)
		rec.HoldAbandoned(at(now))
		list = append(list, rec)
		return err
	}, `SELECT `+recordColumns+`, {t} FROM forbear_idempotency WHERE `+strings.Join(where, " AND ")+` ORDER BY scope, hash LIMIT ?`, append(args, f.Max())...)
	return list, err
}

// recordState is the inverse of recordStates. One that no record has finds none.
func recordState(s idempotency.State) rowState {
	for row, state := range recordStates {
		if state == s {
			return row
		}
	}
	return "-1"
}

// Resolve implements idempotency.Store.
func (i *Idempotency) Resolve(ctx context.Context, id idempotency.ID, res idempotency.Resolution) error {
	set, args := recordReleased, []any{}
	if a := res.Response; a != nil {
		header, body, err := i.db.sealResponse(id, *a)
		if err != nil {
			return err
		}
		set, args = recordCompleted+`, status = ?, header = ?, body = ?, tombstone = ?, completed = {t}`, []any{a.Status, header, body, a.Tombstone, after(0)}
	}
	n, err := single(ctx, i.db, func(t *tx) (int64, error) {
		// Without an owner, a run that still goes on has lost it.
		all := append(slices.Clone(args), res.Text(), after(0), id.Scope, id.Key, res.Fence, res.Fence, after(0))
		return t.exec(`UPDATE forbear_idempotency SET `+set+`, owner = '', note = ?, expires = {t} + (expires - lease) WHERE scope = ? AND hash = ? AND (fence = ? OR CAST(? AS BIGINT) = 0) AND (`+recordHeld+` OR `+rowAbandoned+`)`, all...)
	})
	if err != nil || n > 0 {
		return err
	}
	// Nothing was written: the record is gone, or not held.
	if _, err := i.Get(ctx, id); err != nil {
		return err
	}
	return idempotency.ErrNotHeld
}

// Sweep implements idempotency.Store.
func (i *Idempotency) Sweep(ctx context.Context, limit int) (int, error) {
	n, err := single(ctx, i.db, func(t *tx) (int64, error) {
		// A process that keeps records and delivers nothing has no other beat.
		if err := t.db.lookForMark(t.each); err != nil {
			return 0, err
		}
		if err := t.turnLeasesBack(limit); err != nil {
			return 0, err
		}
		// The last condition is for a record that was claimed anew since the list
		// was made.
		return t.exec(`DELETE FROM forbear_idempotency WHERE (scope, hash) IN (SELECT scope, hash FROM forbear_idempotency r WHERE `+recordNotHeld+` AND expires <= {now} AND `+rowExpired+` LIMIT ?) AND expires <= {t}`,
			after(0), after(0), limit, after(0))
	})
	return int(n), err
}

// sqlCensus reads the index of records that are started or held, and of the table
// those rows alone that wait.
const sqlCensus = `SELECT event, overdue, COUNT(*), MIN(since), {t} FROM (
	SELECT CASE WHEN substr(scope, 1, 6) = '` + idempotency.EventScope + `' THEN 1 ELSE 0 END AS event,
		CASE WHEN ` + recordHeld + ` OR rerun = 0 THEN 0 ELSE 1 END AS overdue,
		CASE WHEN ` + recordHeld + ` OR rerun = 0 THEN created ELSE lease END AS since
	FROM forbear_idempotency
	WHERE ` + recordTaken + ` AND (` + recordHeld + ` AND note <> '` + idempotency.DeadLetterNote + `' OR ` + recordStarted + ` AND lease <= {t} AND (rerun = 0 OR expires > {t}))
		AND substr(scope, 1, 15) <> '` + idempotency.EventProgressScope + `'
	LIMIT ?) AS waiting GROUP BY event, overdue`

// Census implements idempotency.Counter.
func (i *Idempotency) Census(ctx context.Context) (c idempotency.Census, err error) {
	err = i.db.each(ctx, func(r *sql.Rows) error {
		var event, overdue, n int
		var since, now int64
		if err := r.Scan(&event, &overdue, &n, &since, &now); err != nil {
			return err
		}
		w, age := &c.Requests, max(at(now).Sub(at(since)), 0)
		if event == 1 {
			w = &c.Events
		}
		if overdue == 1 {
			w.Overdue, w.OverdueFor = n, age
		} else {
			w.Held, w.HeldFor = n, age
		}
		return nil
	}, sqlCensus, after(0), after(0), after(0), idempotency.MaxCensus)
	return c, err
}
