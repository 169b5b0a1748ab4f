package sqlstore

import (
	"context"
	"time"
)

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
