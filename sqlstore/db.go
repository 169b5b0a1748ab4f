package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// DB is a database of forbear's. What is kept in it is reached through views,
// one for each concept: [DB.Webhooks], [DB.DeadLetters], [DB.Idempotency] and
// [DB.Transactions]. They share the migrations, the writers and the cipher, and
// writes of any of them may be committed together.
//
// Make it with [OpenSQLite] or [Postgres], bring its schema up to date with
// [DB.Migrate], and close it. It is safe for concurrent use.
type DB struct {
	d       dialect
	texts   sync.Map         // statements, as written -> as sent
	now     func() time.Time // the process's clock
	reads   *sql.DB
	pools   []*sql.DB // to be closed with the database
	slots   slots     // of reads
	ops     chan *op
	accepts chan *op // those that accept, and decide about no order
	ordered chan *op // those that decide about the order of keys
	records records
	cipher  Cipher
	sealed  atomic.Bool // all that is read must be encrypted for its place: see mark
	listen  func(ctx context.Context, channel string, wake func(payload string)) error
	notify  notifier
	place   whereabouts // of an SQLite file
	last    atomic.Pointer[acceptEnd]
	passed  atomic.Pointer[relaying] // where the next look at the outbox goes on
	probed  atomic.Int64             // when a probe last wrote, in ns; 0: it failed since
	ahead   lasting                  // deliveries that were written by a clock that was ahead
	keys    lasting                  // idempotency records, likewise

	mu     sync.RWMutex
	closed bool
	group  sync.WaitGroup // the writers
}

// Option changes how a database is used.
type Option func(*DB)

// WithClock replaces SQLite's clock. PostgreSQL's own clock counts always.
func WithClock(now func() time.Time) Option { return func(db *DB) { db.now = now } }

// WithCipher encrypts bodies, headers and endpoints at rest. What was written
// before stays readable.
func WithCipher(c Cipher) Option { return func(db *DB) { db.cipher = c } }

// WithListener lets the database hear of other processes' work. listen
// subscribes to a PostgreSQL channel on a connection of its own, calls wake once
// with "" when it has subscribed, and then with the payload of each notification
// until ctx or the connection ends; it is called again then. With pgx:
//
//	func listenTo(url string) func(ctx context.Context, channel string, wake func(payload string)) error {
//		return func(ctx context.Context, channel string, wake func(payload string)) error {
//			conn, err := pgx.Connect(ctx, url)
//			if err != nil {
//				return err
//			}
//			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
//			if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
//				return err
//			}
//			wake("") // for what happened before
//			for {
//				n, err := conn.WaitForNotification(ctx)
//				if err != nil {
//					return err
//				}
//				wake(n.Payload)
//			}
//		}
//	}
func WithListener(listen func(ctx context.Context, channel string, wake func(payload string)) error) Option {
	return func(db *DB) { db.listen = listen }
}

// ErrClosed refuses a write to a closed database. Nothing was written.
var ErrClosed = errors.New("store is closed")

// open starts the writers. Writes of all kinds share one queue, unless the
// dialect makes others.
func open(d dialect, write, read *sql.DB, opts []Option) *DB {
	db := &DB{d: d, now: time.Now, reads: read, slots: slots{d: d, pool: read, part: storePart}, ops: make(chan *op, maxGroup)}
	db.accepts, db.ordered = db.ops, db.ops
	for _, o := range opts {
		o(db)
	}
	// The options are known by now: writers read them without a lock.
	d.start(db, write)
	return db
}

// Close lets the writes under way finish. Reads go on for as long as the pools
// are open, which are the caller's to close afterwards, but for [OpenSQLite].
func (db *DB) Close() error {
	// No enqueue is under way while the lock is held: nothing is sent to a
	// closed channel.
	db.mu.Lock()
	if !db.closed {
		db.closed = true
		close(db.ops)
		for _, other := range []chan *op{db.accepts, db.ordered} {
			if other != db.ops {
				close(other)
			}
		}
	}
	db.mu.Unlock()
	db.group.Wait()
	var errs []error
	for _, p := range db.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// each reads outside of any transaction of ours and calls f for every row.
func (db *DB) each(ctx context.Context, f func(*sql.Rows) error, text string, args ...any) error {
	args, err := db.args(args)
	if err != nil {
		return err
	}
	release, err := db.slots.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	rows, err := db.reads.QueryContext(ctx, db.sql(text), args...)
	if err != nil {
		return err
	}
	return each(rows, f)
}
