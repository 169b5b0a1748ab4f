package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/webhook/store"
)

// dialect is what differs between the databases. It has two implementations,
// [sqlite] and [postgres], whose methods stand in files that end with _sqlite
// and _postgres; no other file asks which database it works on.
//
// The two differ in more than their words. SQLite has one host and one writer,
// so that a transaction has the database for itself: it needs no locks, and one
// row at a time is quick, since no statement crosses a network. PostgreSQL has
// many writers in many processes: it needs locks, taken in one order, and few
// round trips, which is why its statements work on whole groups.
type dialect interface {
	// name is how a migration marks a statement as being for this database
	// alone.
	name() string
	// sql turns a statement into what the database wants: see [vocabulary].
	sql(text string) string
	// moment is an argument for {t} and {now}. now is the process's clock.
	moment(a after, now time.Time) int64

	// connections returns how many connections the server has for whom the pool
	// connects as; 0 is no limit.
	connections(ctx context.Context, pool *sql.DB) (int, error)
	// start starts the writers of a database, and what else runs beside it.
	start(db *DB, write *sql.DB)
	// session prepares a new connection of a writer.
	session(ctx context.Context, t *tx) error
	// alone reports whether a write does not share its transaction.
	alone(o *op) bool
	// bare reports whether a group needs no transaction around its statements: all
	// that it writes is one of them.
	bare(group []*op) bool
	// bounded returns the context of a group's transaction.
	bounded(group []*op) (context.Context, context.CancelFunc)
	// unsynced lets a group of volatile writes be committed without waiting for
	// the disk, where that is safe, until the returned function is called.
	unsynced(w *writer, group []*op) func(*error)
	// single runs f as a transaction of its own, outside of the order in which
	// the writers take their locks. t ends with f.
	single(ctx context.Context, db *DB, f func(t *tx) error) error

	// fault returns what an error says; 0 when it says nothing of these.
	fault(err error) fault

	// lockKeys waits for locks, and holds them until the transaction ends.
	lockKeys(t *tx, k keyLocks) error
	// lock waits for one of the locks of what one process does at a time, and
	// holds it until the transaction ends.
	lock(t *tx, n int) error
	// tryLock reports whether a lock was free, and holds it then until the
	// transaction ends.
	tryLock(t *tx, n int) (bool, error)
	// tryLockRecord is tryLock for an idempotency record. Where there is a
	// server it ends the transaction when nothing is asked of it for a lease.
	tryLockRecord(t *tx, id idempotency.ID, lease time.Duration) (bool, error)
	// lockSchema has no one else change the schema, or fails because someone does.
	lockSchema(t *tx) error

	// shrink gives a part of the free space back to the file system, and reports
	// whether there may be more.
	shrink(t *tx) (more bool, err error)

	// overwrite has what is deleted or replaced from now on overwritten in the file, or
	// no more, and overwritten does so with what is kept of it apart, as far as no reader
	// needs it. A server has no means of that: it vacuums.
	overwrite(t *tx, on bool) error
	overwritten(ctx context.Context, db *DB)

	// acceptAll adds the messages of calls, and notes at each call and message
	// what became of it.
	acceptAll(t *tx, calls []*acceptance) error
	// claim takes deliveries for lanes, of which there is at least one, and finds when
	// the next is due for those that got less than they want. It comes last in its
	// transaction: it locks rows that a write-back may wait for, and waits for none.
	claim(t *tx, c claim) (store.StepResult, error)
	// writeRows writes the states of deliveries back, fenced by their leases, with
	// their attempts, and marks the rows that were written. Without all it may leave
	// those that redrive a letter.
	writeRows(t *tx, rows []*writeBack, all bool) error
	// plain chooses the rows that are better written apart, by one writeRows.
	plain(rows []*writeBack) []*writeBack
}

// fault is what an error of the database says: one of these, or several.
type fault uint8

const (
	refused   fault = 1 << iota // the statement was rolled back, of a batch
	endedIdle                   // the transaction did nothing for too long
	occupied                    // others work on a table that was to be changed, or change the schema
	elsewhere                   // the server takes no writes: another connection may lead to one that does
	denied                      // this user has not the right, or the database can only be read
)

// says reports whether an error says one of these.
func (db *DB) says(err error, one fault) bool { return db.d.fault(err)&one != 0 }

// vocabulary is the words in braces that statements are written with, for one
// database. Statements are written once:
//
//   - ? is an argument, {t} one of type [after]: a time relative to the store's
//     clock. {now} is {t} where an index is to find what is before it.
//   - {skip locked} takes the rows of a SELECT and passes over what others have
//     taken; {lock delivery} waits for the row that is called d, and {lock message}
//     for the one that is called m.
//   - {in ids} compares with an argument that is a JSON array of numbers, where
//     thousands are looked up in a large table. {ids} are the rows of one, {texts}
//     a table with the column value of an array of strings, and {keys} the table
//     x with the columns e and k of an array of [ordering]. {blobs} is the table x with
//     the columns id and body of an array of [bodyDigest].
//   - {begin} begins a writer's transaction.
//   - {migrated} is whether the table of the migrations is there; {serial}, {bytes},
//     {hot} and {clustered} are words of theirs.
type vocabulary struct{ *strings.Replacer }

// after is an argument: the store's present, plus a duration.
type after time.Duration

// sql is the dialect's sql, asked once for each text.
func (db *DB) sql(text string) string {
	// There are some dozens of texts, and a few more for filters.
	if s, ok := db.texts.Load(text); ok {
		return s.(string)
	}
	s := db.d.sql(text)
	db.texts.Store(text, s)
	return s
}

// asJSON is an argument that is sent as the text of its JSON, such as {ids} wants.
type asJSON struct{ value any }

// args makes arguments that drivers know, in place. Times become microseconds.
func (db *DB) args(args []any) ([]any, error) {
	for i, a := range args {
		switch v := a.(type) {
		case after:
			args[i] = db.d.moment(v, db.now())
		case time.Time:
			args[i] = micros(v)
		case rowState:
			args[i] = v.number()
		case asJSON:
			text, err := json.Marshal(v.value)
			if err != nil {
				return nil, err
			}
			args[i] = string(text)
		}
	}
	return args, nil
}

// micros returns t in microseconds, or nil for the zero time.
func micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// at is the inverse of micros.
func at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
