package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"slices"
	"time"
)

// writer is the group commit: it gathers the writes that wait and commits them
// in one transaction, so that many of them share one fsync. It has its own
// connection and runs under a background context: a caller's context only
// guards that caller's wait, since a canceled member would otherwise roll back
// the transaction of all others.
//
// SQLite has one writer, PostgreSQL a few.
type writer struct {
	s    *Store
	db   *sql.DB
	d    *dialect
	ops  <-chan *op
	next *op // taken out of ops, and not for the group that was being gathered
	conn *sql.Conn
	tx   *tx
}

const (
	maxGroup     = 256              // writes in one transaction
	groupTimeout = 30 * time.Second // of one transaction on PostgreSQL
)

// loop runs until ops is closed.
func (w *writer) loop() {
	for first := w.first(); first != nil; first = w.first() {
		group := w.gather([]*op{first})
		// Those whose writes were just committed may be about to bring the next:
		// let them run before this group closes, as long as that brings some.
		for n := 0; n < len(group); {
			n = len(group)
			runtime.Gosched()
			group = w.gather(group)
		}
		w.commit(group)
	}
	w.drop()
}

// first waits for the write that begins a group; nil is the end.
func (w *writer) first() *op {
	if o := w.next; o != nil {
		w.next = nil
		return o
	}
	return <-w.ops
}

// gather adds the writes that wait.
func (w *writer) gather(group []*op) []*op {
	for len(group) < maxGroup && w.next == nil && !w.alone(group[0]) {
		select {
		case o, ok := <-w.ops:
			if !ok {
				return group
			}
			if w.alone(o) {
				w.next = o
				return group
			}
			group = append(group, o)
		default:
			return group
		}
	}
	return group
}

// alone reports whether a write must not share its transaction. SQLite has one
// writer, and no locks to wait for.
func (w *writer) alone(o *op) bool { return o.alone && w.d.postgres }

// commit runs a group in one transaction. When anything fails the transaction
// is rolled back and the members are replayed one by one, each in its own, so
// that a bad one harms nobody else; a full disk takes the same path.
func (w *writer) commit(group []*op) {
	if w.d.postgres {
		var later []*op
		if group, later = apart(group); len(later) > 0 {
			defer w.commit(later)
		}
	}
	err := w.together(group)
	if err == nil {
		for _, o := range group {
			o.done <- nil
		}
		return
	}
	if len(group) == 1 && errors.Is(err, errOwn) {
		group[0].done <- err
		return
	}
	for _, o := range group {
		o.done <- w.together([]*op{o})
	}
}

func (w *writer) together(group []*op) (err error) {
	ctx := context.Background()
	if w.d.postgres {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cmp.Or(group[0].limit, groupTimeout))
		defer cancel()
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	w.tx.ctx, w.tx.alerts = ctx, nil
	begin := "BEGIN ISOLATION LEVEL READ COMMITTED" // what was committed before a lock was had is seen
	if !w.d.postgres {
		begin = "BEGIN IMMEDIATE"
		if !slices.ContainsFunc(group, func(o *op) bool { return !o.volatile }) {
			defer w.unsynced()(&err)
		}
	}
	if _, err := w.tx.exec(begin); err != nil {
		w.drop()
		return err
	}
	if err = w.run(group); err == nil {
		if _, err = w.tx.exec("COMMIT"); err == nil {
			return nil
		}
	}
	// The database may have ended the transaction by itself; a rollback that
	// fails for another reason costs the connection.
	if _, rollback := w.tx.exec("ROLLBACK"); rollback != nil && (w.d.postgres || !w.alive()) {
		w.drop()
	}
	return err
}

// run runs the members. Locks that others may wait for are taken in one order
// by all writers of all processes, so that no two wait for each other: keys,
// then new deliveries by their identity, then the rows of those that hold a
// lease, then what is claimed, and at the end the open alerts.
func (w *writer) run(group []*op) error {
	var calls []*acceptance
	var keys keyLocks
	for _, o := range group {
		keys |= o.keys
		if o.accept != nil {
			calls = append(calls, o.accept)
		}
	}
	if err := w.tx.lockKeys(keys); err != nil {
		return err
	}
	if len(calls) > 0 {
		if err := w.tx.acceptAll(calls); err != nil {
			return err
		}
	}
	for _, o := range group {
		if o.run != nil {
			if err := o.run(w.tx); err != nil {
				return err
			}
		}
	}
	for _, o := range group {
		if o.last != nil {
			if err := o.last(w.tx); err != nil {
				return err
			}
		}
	}
	return w.tx.raiseAll()
}

func (w *writer) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	w.conn = conn
	w.tx = &tx{s: w.s, d: w.d, conn: conn}
	if w.d.postgres {
		return w.settings(ctx)
	}
	w.tx.prepared = map[string]*sql.Stmt{}
	return nil
}

// drop gives up the connection for good.
func (w *writer) drop() {
	if w.conn == nil {
		return
	}
	for _, s := range w.tx.prepared {
		_ = s.Close()
	}
	// Not back to the pool: it may hold an open transaction.
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = w.conn.Close()
	w.conn, w.tx = nil, nil
}
