package sqlstore

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/forbear-go/forbear/webhook/store"
)

// Holds change much more often than endpoints while many are down, so that they have a
// table of their own: no configuration is read for them. Their changes are numbered as
// those of endpoints are.
const (
	nextHold = `(SELECT COALESCE(max(changed), 0) + 1 FROM forbear_holds)`
	// goesOn is the condition of a hold that is neither over nor forgotten.
	goesOn = `forbear_holds.finished = 0 AND forbear_holds.expires > {now}`
	// overFor is how long others can read that a hold is over.
	overFor = time.Hour
)

// PutHolds implements store.Store. That a hold begins or ends is made known at once;
// how it goes on is read soon enough.
func (w *Webhooks) PutHolds(ctx context.Context, owner string, list []store.HoldWrite) error {
	news, err := do(ctx, w.db, func(t *tx) (news bool, err error) {
		if err := t.db.d.lock(t, holdLock); err != nil {
			return false, err
		}
		for i := range list {
			n, err := t.putHold(owner, &list[i])
			if err != nil {
				return false, err
			}
			news = news || n
		}
		// Numbers must not come twice: the highest stays.
		_, err = t.exec(`DELETE FROM forbear_holds WHERE expires <= {now} AND changed < (SELECT max(changed) FROM forbear_holds)`, after(0))
		return news, err
	})
	if news && err == nil {
		w.db.notify.wake()
	}
	return err
}

// putHold writes a hold, and reports whether it begins or ends.
func (t *tx) putHold(owner string, h *store.HoldWrite) (news bool, err error) {
	due, expires := after(h.In), after(store.HoldFor)
	if h.Begins {
		n, err := t.exec(`INSERT INTO forbear_holds (endpoint, kind, owner, why, looks, due, finished, expires, changed) VALUES (?, ?, ?, ?, ?, {t}, 0, {t}, `+nextHold+`)
			ON CONFLICT (endpoint, kind) DO UPDATE SET owner = EXCLUDED.owner, why = EXCLUDED.why, looks = EXCLUDED.looks, due = EXCLUDED.due, finished = 0,
			expires = EXCLUDED.expires, changed = EXCLUDED.changed WHERE NOT (`+goesOn+`)`, h.Endpoint, h.Kind, owner, h.Why, h.Looks, due, expires, after(0))
		if err != nil {
			return false, err
		}
		if news = n > 0; news && h.Alert.Queue != "" {
			t.raise(h.Alert)
		}
	}
	switch {
	case h.Over:
		n, err := t.exec(`UPDATE forbear_holds SET owner = ?, finished = 1, expires = {t}, changed = `+nextHold+` WHERE endpoint = ? AND kind = ? AND `+goesOn,
			owner, after(overFor), h.Endpoint, h.Kind, after(0))
		return news || n > 0, err
	case !h.Begins:
		_, err = t.exec(`UPDATE forbear_holds SET owner = ?, why = ?, looks = CASE WHEN looks > ? THEN looks ELSE ? END, due = {t}, expires = {t}, changed = `+nextHold+`
			WHERE endpoint = ? AND kind = ? AND `+goesOn, owner, h.Why, h.Looks, h.Looks, due, expires, h.Endpoint, h.Kind, after(0))
	}
	return news, err
}

// dropHolds forgets those of an endpoint that is deleted.
func (t *tx) dropHolds(endpoint string) error {
	_, err := t.exec(`UPDATE forbear_holds SET expires = {t} WHERE endpoint = ?`, after(0), endpoint)
	return err
}

// HoldChanges implements store.Store.
func (w *Webhooks) HoldChanges(ctx context.Context, since int64) (list []store.Hold, mark int64, err error) {
	mark = since
	// The upper bound is for PostgreSQL's estimate: see EndpointChanges.
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var h store.Hold
		var in, changed int64
		if err := r.Scan(&h.Endpoint, &h.Kind, &h.Owner, &h.Why, &h.Looks, &in, &h.Over, &changed); err != nil {
			return err
		}
		h.In, mark = time.Duration(in)*time.Microsecond, max(mark, changed)
		if since > 0 || !h.Over {
			list = append(list, h)
		}
		return nil
	}, `SELECT endpoint, kind, owner, why, looks, due - {t}, finished <> 0, changed FROM forbear_holds WHERE changed > ? AND changed <= ? AND expires > {now}`,
		after(0), since, int64(math.MaxInt64), after(0))
	return list, mark, err
}

// Heartbeat implements store.Store.
func (w *Webhooks) Heartbeat(ctx context.Context, owner string, lease time.Duration) (live int, err error) {
	return do(ctx, w.db, func(t *tx) (live int, err error) {
		if err := t.db.lookForMark(t.each); err != nil {
			return 0, err
		}
		// One beat at a time: it sees all that were before it, and deletes no row that
		// another is about to write.
		if err := t.db.d.lock(t, memberLock); err != nil {
			return 0, err
		}
		// One that was written by a clock that was ahead would count for as long.
		if _, err = t.exec(`UPDATE forbear_dispatchers SET expires = {t} WHERE expires > {t}`, after(lease), after(latest)); err != nil {
			return 0, err
		}
		if _, err = t.exec(`INSERT INTO forbear_dispatchers (owner, expires) VALUES (?, {t}) ON CONFLICT (owner) DO UPDATE SET expires = EXCLUDED.expires`, owner, after(lease)); err != nil {
			return 0, err
		}
		if _, err = t.exec(`DELETE FROM forbear_dispatchers WHERE expires < {now}`, after(0)); err != nil {
			return 0, err
		}
		_, err = t.row([]any{&live}, `SELECT count(*) FROM forbear_dispatchers`)
		return live, err
	})
}

// Leave implements store.Store.
func (w *Webhooks) Leave(ctx context.Context, owner string) error {
	return w.db.write(ctx, func(t *tx) error {
		_, err := t.exec(`DELETE FROM forbear_dispatchers WHERE owner = ?`, owner)
		return err
	})
}
