package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Store is the database: it implements webhook.Store and deadletter.Store. Make
// it with [SQLite] or [Postgres], bring its schema up to date with
// [Store.Migrate], and close it. It is safe for concurrent use.
type Store struct {
	d       *dialect
	reads   *sql.DB
	ops     chan *op
	ordered chan *op // those that decide about the order of keys: they have a writer of their own
	cipher  Cipher
	listen  func(ctx context.Context, channel string, wake func()) error
	notify  notifier

	mu     sync.RWMutex
	closed bool
	group  sync.WaitGroup
}

// Option changes how a store works.
type Option func(*Store)

// WithClock replaces SQLite's clock. PostgreSQL's own clock counts always.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.d.now = now } }

// WithCipher encrypts bodies, headers and endpoints at rest.
func WithCipher(c Cipher) Option { return func(s *Store) { s.cipher = c } }

// WithListener lets the store hear of other processes' work. listen subscribes
// to a PostgreSQL channel on a connection of its own and calls wake for each
// notification until ctx or the connection ends; it is called again then.
func WithListener(listen func(ctx context.Context, channel string, wake func()) error) Option {
	return func(s *Store) { s.listen = listen }
}

// ErrClosed is the answer of a closed store.
var ErrClosed = errors.New("store is closed")

// SQLite returns a store over two pools on one SQLite file: one for the single
// writer and one for reads. Open both with the source names of [SQLiteNames].
// The pools stay the caller's to close, after the store.
func SQLite(write, read *sql.DB, opts ...Option) *Store {
	return open(&dialect{now: time.Now}, write, read, 1, opts)
}

// SQLiteNames returns the data source names for the writing and the reading
// pool of a file, in the form of modernc.org/sqlite. They carry the pragmas, so
// that every connection of a pool has them: WAL with synchronous=FULL, without
// which the last commits may be lost in a power cut. The path may end with
// parameters of its own, after a question mark.
func SQLiteNames(path string) (write, read string) {
	path, more, ok := strings.Cut(path, "?")
	if ok {
		more = "&" + more
	}
	base := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)" + more
	return base + "&_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-16000)&_txlock=immediate", base + "&_pragma=query_only(1)"
}

// Postgres returns a store over a pool of PostgreSQL connections. The pool
// stays the caller's to close, after the store.
func Postgres(db *sql.DB, opts ...Option) *Store {
	return open(&dialect{postgres: true, now: time.Now}, db, db, 4, opts)
}

func open(d *dialect, write, read *sql.DB, writers int, opts []Option) *Store {
	s := &Store{d: d, reads: read, ops: make(chan *op, maxGroup)}
	s.ordered = s.ops
	for _, o := range opts {
		o(s)
	}
	if d.postgres {
		s.notify.send = s.sendNotify
		// Several writers of one process would only wait for each other's keys.
		s.ordered = make(chan *op, maxGroup)
		s.group.Go((&writer{s: s, db: write, d: d, ops: s.ordered}).loop)
	}
	for range writers {
		s.group.Go((&writer{s: s, db: write, d: d, ops: s.ops}).loop)
	}
	return s
}

// Close lets the writes under way finish.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.ops)
		if s.ordered != s.ops {
			close(s.ordered)
		}
	}
	s.mu.Unlock()
	s.group.Wait()
	return nil
}

// write runs f in a transaction that may be shared with other writes. It
// returns when the transaction is on disk, or when ctx ends: then the write may
// still happen.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	return s.submit(ctx, &op{run: f, alone: true})
}

func (s *Store) submit(ctx context.Context, o *op) error {
	o.done = make(chan error, 1)
	if err := s.enqueue(ctx, o); err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// do is write for an f with a result. The result is handed over only when the
// caller is still there, which is why it needs the type parameter: a captured
// variable would be written behind the back of a caller that has left.
func do[T any](ctx context.Context, s *Store, f func(*tx) (T, error)) (T, error) {
	return doAs(ctx, s, op{alone: true}, f)
}

// doAs is do, for a write that is not like all others: as says how.
func doAs[T any](ctx context.Context, s *Store, as op, f func(*tx) (T, error)) (T, error) {
	box := new(T)
	as.run = func(t *tx) (err error) {
		*box, err = f(t)
		return err
	}
	return submitted(ctx, s, &as, box)
}

// doLast is do, for what comes last in its group.
func doLast[T any](ctx context.Context, s *Store, f func(*tx) (T, error)) (T, error) {
	box := new(T)
	return submitted(ctx, s, &op{last: func(t *tx) (err error) {
		*box, err = f(t)
		return err
	}}, box)
}

func submitted[T any](ctx context.Context, s *Store, o *op, box *T) (result T, err error) {
	if err := s.submit(ctx, o); err != nil {
		return result, err
	}
	return *box, nil
}

func (s *Store) enqueue(ctx context.Context, o *op) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	ops := s.ops
	if o.keys != 0 {
		ops = s.ordered
	}
	select {
	case ops <- o:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// query reads outside of any transaction of ours.
func (s *Store) query(ctx context.Context, f func(*sql.Rows) error, text string, args ...any) error {
	rows, err := s.reads.QueryContext(ctx, s.d.sql(text), s.d.args(args)...)
	if err != nil {
		return err
	}
	return each(rows, f)
}
