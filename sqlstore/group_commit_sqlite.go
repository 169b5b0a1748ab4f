package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
)

// session keeps statements prepared, which the driver does not. The pragmas
// come with the source's name.
func (sqlite) session(_ context.Context, t *tx) error {
	t.prepared = map[string]*sql.Stmt{}
	return nil
}

// alone lets everything share: there are no locks to wait for.
func (sqlite) alone(*op) bool { return false }

// bare is false: there is no network to save a way on, and a group shares a sync.
func (sqlite) bare([]*op) bool { return false }

// bounded sets no bound: no other process holds this one up for longer than the
// busy timeout.
func (sqlite) bounded([]*op) (context.Context, context.CancelFunc) {
	return context.Background(), func() {}
}

// unsynced makes SQLite commit without waiting for the disk when all of a group
// is volatile. The next commit that waits covers those before it.
func (sqlite) unsynced(w *writer, group []*op) func(*error) {
	// One write that must last is enough to sync them all.
	durable := slices.ContainsFunc(group, func(o *op) bool { return !o.volatile })
	if durable || w.tx.execOnce("PRAGMA synchronous = NORMAL") != nil {
		return func(*error) {}
	}
	return func(err *error) {
		if w.tx == nil {
			return // the connection is gone
		}
		if back := w.tx.execOnce("PRAGMA synchronous = FULL"); back != nil { // never go on like this
			w.drop()
			*err = errors.Join(*err, back)
		}
	}
}

// single goes through the group commit, as there is no other writer.
func (sqlite) single(ctx context.Context, db *DB, f func(t *tx) error) error {
	return db.write(ctx, f)
}
