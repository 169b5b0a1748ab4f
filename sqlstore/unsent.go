package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// What waits, or is held behind one of its key, may be ended without a lease: no
// one is sending it.

// target is a delivery that is to be ended, or to begin anew.
type target struct {
	id              int64
	state           rowState
	message, letter string
	ordering
}

const targetColumns = `d.id, d.state, d.message_id, d.endpoint, COALESCE(d.okey, ''), COALESCE(d.letter, '')`

func scanTarget(r *sql.Rows) (g target, err error) {
	err = r.Scan(&g.id, &g.state, &g.message, &g.Endpoint, &g.Key, &g.letter)
	return g, err
}

// targets reads deliveries and holds them until the transaction ends, with the
// order of their keys. The keys are locked before the rows, and the rows in their
// order, as by all that write both.
func (t *tx) targets(ids []int64) ([]target, error) {
	const text = `SELECT ` + targetColumns + ` FROM forbear_deliveries d WHERE d.id IN ({ids}) ORDER BY d.id`
	list, err := collect(t, scanTarget, text, asJSON{ids})
	if err != nil {
		return nil, err
	}
	var locks keyLocks
	for _, g := range list {
		if g.Key != "" {
			locks.add(g.Endpoint, g.Key)
		}
	}
	if err := t.db.d.lockKeys(t, locks); err != nil {
		return nil, err
	}
	return collect(t, scanTarget, text+` {lock delivery}`, asJSON{ids})
}

// endUnsent ends deliveries of targets that wait or are held, and lets the next of
// their keys go.
func (t *tx) endUnsent(list []target, as rowState) error {
	var ids []int64
	var keys []ordering
	for _, g := range list {
		ids = append(ids, g.id)
		if g.Key != "" {
			keys = append(keys, g.ordering)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := t.exec(`UPDATE forbear_deliveries SET state = ?, finished = {t}, cancel = NULL WHERE id IN ({ids})`, as, after(0), asJSON{ids})
	if err != nil {
		return err
	}
	return t.promote(keys)
}

// unsent returns those of the targets that wait or are held.
func unsent(list []target) []target {
	return slices.DeleteFunc(slices.Clone(list), func(g target) bool { return g.state != waiting && g.state != held })
}

// orphans finds the endpoints that are no more and have deliveries that wait.
const orphans = waitingEndpoints + `
	SELECT endpoint FROM e WHERE endpoint IS NOT NULL AND NOT EXISTS (SELECT 1 FROM forbear_endpoints p WHERE p.id = e.endpoint AND p.deleted IS NULL)`

// Abandon implements store.Store. It goes by what is there and not by what was
// deleted: a process that had not heard of it may have accepted more since.
func (w *Webhooks) Abandon(ctx context.Context, limit int) (int, error) {
	endpoints, err := readAll(ctx, w.db, one[string], orphans)
	if err != nil {
		return 0, err
	}
	var unreadable error
	for _, endpoint := range endpoints {
		list, err := w.abandoned(ctx, endpoint, limit)
		if err != nil {
			return 0, err
		}
		ids, letters := make([]int64, 0, len(list)), make(map[int64]letterRow, len(list))
		for i := range list {
			d := &list[i]
			if d.Unreadable != nil { // it has no letter yet, and waits for its key
				unreadable = fmt.Errorf("message %q to endpoint %q %w: %w", d.Message.ID, endpoint, webhook.ErrUnreadable, d.Unreadable)
				continue
			}
			ids = append(ids, d.ID)
			if letters[d.ID], err = w.db.encodeLetter(*d.Abandoned(w.db.now())); err != nil {
				return 0, err
			}
		}
		if len(ids) > 0 {
			return do(ctx, w.db, func(t *tx) (int, error) { return t.abandon(ids, letters) })
		}
	}
	return 0, unreadable
}

// abandoned reads deliveries to a deleted endpoint. Those that are held end first,
// since the last that waits is what is looked for. It puts off what cannot be read, so
// that others come first the next time.
func (w *Webhooks) abandoned(ctx context.Context, endpoint string, limit int) ([]store.Delivery, error) {
	scan := func(r *sql.Rows) (store.Delivery, error) { return w.db.scanClaim(r) }
	const those = `SELECT ` + claimed + ` FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.endpoint = ? AND `
	list, err := readAll(ctx, w.db, scan, those+`d.okey IS NOT NULL AND d.`+stateUnfinished+` AND d.`+stateHeld+` LIMIT ?`, endpoint, limit)
	if err != nil || slices.ContainsFunc(list, func(d store.Delivery) bool { return d.Unreadable == nil }) {
		return list, err
	}
	if list, err = readAll(ctx, w.db, scan, those+`d.`+stateWaiting+` ORDER BY d.due LIMIT ?`, endpoint, limit); err != nil {
		return nil, err
	}
	var unreadable []int64
	for i := range list {
		if list[i].Unreadable != nil {
			unreadable = append(unreadable, list[i].ID)
		}
	}
	if len(unreadable) == 0 {
		return list, nil
	}
	return list, w.db.write(ctx, func(t *tx) error {
		_, err := t.exec(`UPDATE forbear_deliveries SET due = {t}, written = {t}, unreadable = fence WHERE id IN ({ids}) AND `+stateWaiting, after(time.Hour), after(0), asJSON{unreadable})
		return err
	})
}

// abandon ends deliveries with their letters, unless their endpoint has come back.
func (t *tx) abandon(ids []int64, letters map[int64]letterRow) (int, error) {
	all, err := t.targets(ids)
	list := unsent(all)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	var back int
	found, err := t.row([]any{&back}, `SELECT 1 FROM forbear_endpoints WHERE id = ? AND deleted IS NULL`, list[0].Endpoint)
	if err != nil || found {
		return 0, err
	}
	if err := t.endUnsent(list, dead); err != nil {
		return 0, err
	}
	for _, g := range list {
		if err := t.deadLetter(g.id, g.letter, letters[g.id]); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// deleting refuses to put an endpoint that was deleted while messages to it have
// not ended: they were sent to another one, in the eyes of who sent them. The
// transaction has the lock of the endpoints.
func (t *tx) deleting(id string) error {
	var gone int
	found, err := t.row([]any{&gone}, `SELECT 1 FROM forbear_endpoints WHERE id = ? AND deleted IS NOT NULL AND (
			EXISTS (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = ? AND d.`+stateWaiting+`)
			OR EXISTS (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = ? AND d.okey IS NOT NULL AND d.`+stateUnfinished+`)
			OR EXISTS (SELECT 1 FROM forbear_deliveries d WHERE d.endpoint = ? AND d.`+stateLeased+`))`, id, id, id, id)
	if err == nil && found {
		err = own(store.ErrDeleting)
	}
	return err
}
