package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// writer is the group commit: it gathers the writes that wait and commits them
// in one transaction, so that many of them share one fsync. It has its own
// connection and runs under a background context: see [op].
//
// SQLite has one writer, PostgreSQL a few. Three rules keep what was
// acknowledged, and keep writers from harming each other:
//
//   - A write is acknowledged after the commit that it is in, never before.
//   - After any error the transaction is rolled back and its members are
//     replayed one by one, each in a transaction of its own. A statement that
//     failed may have ended the transaction without a word (a full disk does),
//     and what ran before it in the group must not be taken for done.
//   - Locks are taken in one order by all writers of all processes: see
//     [writer.run].
type writer struct {
	db   *DB
	pool *sql.DB
	ops  <-chan *op
	next *op // taken out of ops, and not for the group that was being gathered
	// turns is shared by the writers of a queue; nil: each group leaves at once.
	turns *turns
	conn  *sql.Conn
	tx    *tx
}

// maxGroup is how many writes are in one transaction at most.
const maxGroup = 256

// startWriter starts a writer for what is sent to ops, until ops is closed.
func (db *DB) startWriter(pool *sql.DB, ops <-chan *op, t *turns) {
	db.group.Go((&writer{db: db, pool: pool, ops: ops, turns: t}).loop)
}

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
		if w.turns == nil {
			w.commit(group)
			continue
		}
		group = w.await(group)
		w.commit(group)
		w.turns.end()
	}
	w.drop()
}

// await waits for the group's turn, and gathers meanwhile.
func (w *writer) await(group []*op) []*op {
	ops := w.ops
	for {
		ok, ended := w.turns.leave(len(group))
		if ok {
			return group
		}
		select {
		case o, ok := <-ops:
			if !ok {
				ops = nil // the end, and the other group's is near
				continue
			}
			group = w.gather(append(group, o))
		case <-ended:
		}
	}
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
	for len(group) < maxGroup && w.next == nil && !w.db.d.alone(group[0]) {
		select {
		// Without waiting: a group is what is there.
		case o, ok := <-w.ops:
			if !ok {
				return group
			}
			if w.db.d.alone(o) {
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

// commit runs a group in one transaction. When anything fails the transaction
// is rolled back and the members are replayed one by one, each in its own, so
// that a bad one harms no other; a full disk takes the same path.
func (w *writer) commit(group []*op) {
	err := w.together(group)
	if errors.Is(err, errNotBegun) && !w.db.says(err, occupied) {
		err = w.together(group) // what failed may have been the connection
	}
	// Also for a group of one, for the same reason, unless the store has refused it: it
	// would be refused again.
	if err != nil && !errors.Is(err, errNotBegun) && (len(group) > 1 || !errors.Is(err, errOwn)) {
		w.replay(group)
		return
	}
	for _, o := range group {
		w.end(o, err)
	}
}

// replay runs the members of a group one by one. When the database cannot be reached
// any more, each of those that are left would only wait for the same.
func (w *writer) replay(group []*op) {
	var err error
	for _, o := range group {
		if !errors.Is(err, errNotBegun) {
			err = w.together([]*op{o})
		}
		w.end(o, err)
	}
}

// end tells a write's caller what became of it.
func (w *writer) end(o *op, err error) {
	if o.accept != nil {
		w.db.accepted(err)
	}
	o.done <- err
}

// errNotBegun marks errors that come before the first statement of a group: none of its
// members is to blame, and none of them would fare better alone.
var errNotBegun = errors.New("not begun")

// notBegun adds errNotBegun to what err is, without a word of its own.
func notBegun(err error) error { return markedError{err, errNotBegun} }

// together runs a group in one transaction, all of it or nothing.
func (w *writer) together(group []*op) (err error) {
	ctx, cancel := w.db.d.bounded(group)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return notBegun(err)
	}
	// Alerts of a try that was rolled back are not raised.
	w.tx.ctx, w.tx.alerts = ctx, nil
	defer w.db.d.unsynced(w, group)(&err)
	// A statement is a transaction by itself: nothing has to begin or commit it.
	bare := w.db.d.bare(group)
	if !bare {
		if _, err := w.tx.exec("{begin}"); err != nil {
			if !w.db.says(err, occupied) { // there is nothing wrong with the connection
				w.drop()
			}
			return notBegun(err)
		}
	}
	if err = w.run(group); err == nil && !bare {
		_, err = w.tx.exec("COMMIT")
	}
	if err == nil {
		// What was committed into a file that is not there any more is not acknowledged.
		return w.db.place.check(w.tx)
	}
	// A rollback that fails costs the connection, also where SQLite has ended the
	// transaction by itself, as on a full disk. A server that takes no writes may have
	// become a standby, and new connections lead elsewhere.
	if _, rollback := w.tx.exec("ROLLBACK"); rollback != nil || w.db.says(err, elsewhere) {
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
	if err := w.db.d.lockKeys(w.tx, keys); err != nil {
		return err
	}
	if len(calls) > 0 {
		if err := w.tx.acceptAll(calls); err != nil {
			return err
		}
	}
	for _, o := range group {
		if o.run == nil {
			continue
		}
		if err := o.run(w.tx); err != nil {
			return err
		}
	}
	return w.tx.raiseAll()
}

// connect takes a connection out of the pool for the writer alone, unless it
// has one. A file that is not in its place is not opened anew: that would make one.
func (w *writer) connect(ctx context.Context) error {
	if err := w.db.place.check(w.tx); err != nil {
		return err
	}
	if w.conn != nil && (w.tx.until.IsZero() || time.Now().Before(w.tx.until)) {
		return nil
	}
	w.drop()
	tries := 0
	for pause := (wait.Backoff{Base: 5 * time.Millisecond, Cap: 50 * time.Millisecond}); ; {
		conn, err := w.pool.Conn(ctx)
		if err != nil {
			return err
		}
		w.conn, w.tx = conn, &tx{ctx: ctx, db: w.db, conn: conn}
		if err = w.db.d.session(ctx, w.tx); err == nil {
			return nil
		}
		w.drop()
		if tries++; tries == connectTries || !wait.Sleep(ctx, pause.Next()) {
			return err
		}
	}
}

// connectTries is how many connections of the pool are tried: a server that has ended all
// of them leaves the pool with some that it was idle with.
const connectTries = 3

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
