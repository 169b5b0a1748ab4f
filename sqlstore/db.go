package sqlstore

import (
	"context"
	"database/sql"
	"errors"
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

// query reads outside of any transaction of ours.
func (s *Store) query(ctx context.Context, f func(*sql.Rows) error, text string, args ...any) error {
	rows, err := s.reads.QueryContext(ctx, s.d.sql(text), s.d.args(args)...)
	if err != nil {
		return err
	}
	return each(rows, f)
}
