package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// sqlite is the dialect of SQLite.
type sqlite struct{}

var sqliteWords = vocabulary{strings.NewReplacer(
	"{t}", "?", "{now}", "?",
	"{skip locked}", "", "{lock delivery}", "", "{lock message}", "",
	"{in ids}", "IN (SELECT value FROM json_each(?))", "{ids}", "SELECT value FROM json_each(?)", "{texts}", "json_each(?)",
	"{keys}", "(SELECT value ->> 'e' AS e, value ->> 'k' AS k FROM json_each(?)) x",
	"{blobs}", "(SELECT value ->> 'id' AS id, unhex(value ->> 'hex') AS body FROM json_each(?)) x",
	"{begin}", "BEGIN IMMEDIATE", // the write lock at once: one that began as a reader could not wait for it
	"{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bytes}", "BLOB", "{hot}", "", "{clustered}", "WITHOUT ROWID",
	"{migrated}", "EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'forbear_migrations')",
)}

func (sqlite) name() string { return "sqlite" }

func (sqlite) sql(text string) string { return sqliteWords.Replace(text) }

// moment goes by the process's clock: SQLite has one host.
func (sqlite) moment(a after, now time.Time) int64 { return now.Add(time.Duration(a)).UnixMicro() }

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

// A transaction of SQLite's one writer has all locks.

func (sqlite) lockKeys(*tx, keyLocks) error { return nil }

func (sqlite) lock(*tx, int) error { return nil }

func (sqlite) tryLock(*tx, int) (bool, error) { return true, nil }

func (sqlite) tryLockRecord(*tx, idempotency.ID, time.Duration) (bool, error) { return true, nil }

func (sqlite) lockSchema(*tx) error { return nil }

// fault goes by the lower byte of the code, which each driver has in its own way: this is
// modernc.org/sqlite's. SQLITE_BUSY is that of a file which another process has written to
// for longer than the busy timeout, since it changes the schema perhaps, and
// SQLITE_READONLY that of one which this user may only read.
func (sqlite) fault(err error) fault {
	const busy, readOnly = 5, 8
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return 0
	}
	switch coded.Code() & 0xff {
	case busy:
		return occupied
	case readOnly:
		return denied
	}
	return 0
}
