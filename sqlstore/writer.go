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

	"github.com/forbear-go/forbear/deadletter"
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

// op is one write. run may be called again, after a rollback: it keeps nothing
// from one call to the next.
type op struct {
	run    func(*tx) error
	accept *acceptance // instead of run: those of a group are run as one
	// last is run after the others of the group: it waits for no lock, and may
	// take some that others wait for.
	last func(*tx) error
	keys keyLocks // of the keys whose order the write decides about
	// alone says that the write has a transaction of its own on PostgreSQL: it
	// takes locks that the order of the others does not foresee.
	alone bool
	// volatile says that a power cut may take the write back, for one that
	// means nothing after a restart of the machine.
	volatile bool
	// limit bounds the transaction on PostgreSQL; default groupTimeout.
	limit time.Duration
	done  chan error
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

// apart takes those that accept a message which one before them accepts as
// well: in the same transaction they would come out of the order in which all
// writers add messages.
func apart(group []*op) (now, later []*op) {
	if len(group) == 1 {
		return group, nil
	}
	taken := map[identity]bool{}
	for _, o := range group {
		if o.accept == nil || o.accept.take(taken) {
			now = append(now, o)
		} else {
			later = append(later, o)
		}
	}
	return now, later
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

// unsynced makes SQLite commit without waiting for the disk, until the returned
// function is called. The next commit that waits covers those before it.
func (w *writer) unsynced() func(*error) {
	level := func(s string) error {
		_, err := w.tx.execOnce("PRAGMA synchronous = " + s)
		return err
	}
	if level("NORMAL") != nil {
		return func(*error) {}
	}
	return func(err *error) {
		if w.tx == nil {
			return // the connection is gone
		}
		if back := level("FULL"); back != nil { // never go on like this
			w.drop()
			*err = errors.Join(*err, back)
		}
	}
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

// alive reports whether the connection can begin a transaction.
func (w *writer) alive() bool {
	if _, err := w.tx.exec("BEGIN IMMEDIATE"); err != nil {
		return false
	}
	_, err := w.tx.exec("ROLLBACK")
	return err == nil
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

// settings keeps PostgreSQL from reading whole tables. It cannot know that a
// claim finds a handful of rows, and joins what it believes to be thousands
// with a table of a million by reading all of it. Where there is no other way,
// its estimate is so high that it would compile the statement, which takes
// longer than any of ours. And it ends the transaction of a process that was
// frozen in the middle of one, whose locks would hold up all others.
func (w *writer) settings(ctx context.Context) error {
	_, err := w.conn.ExecContext(ctx, `SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
		SET idle_in_transaction_session_timeout = '10s'`)
	if err != nil {
		w.drop()
	}
	return err
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

// errOwn marks errors that the store returns by itself: a replay would only
// repeat them.
var errOwn = errors.New("refused by the store")

type ownError struct{ error }

func (e ownError) Unwrap() error        { return e.error }
func (e ownError) Is(target error) bool { return target == errOwn }

// own marks err as the store's own.
func own(err error) error { return ownError{err} }

// tx is a transaction as the stores see it.
type tx struct {
	ctx      context.Context //nolint:containedctx // the group's, set by the writer
	s        *Store
	d        *dialect
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
	alerts   []deadletter.Alert // raised at the end of the transaction
}

// exec runs a statement and returns the number of rows that it changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	var res sql.Result
	stmt, err := t.stmt(text)
	switch {
	case err != nil:
		return 0, err
	case stmt != nil:
		res, err = stmt.ExecContext(t.ctx, t.d.args(args)...)
	default:
		res, err = t.conn.ExecContext(t.ctx, t.d.sql(text), t.d.args(args)...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// insert adds one row on SQLite and returns its id; ok is false when it was
// there.
func (t *tx) insert(text string, args ...any) (id int64, ok bool, err error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return 0, false, err
	}
	res, err := stmt.ExecContext(t.ctx, t.d.args(args)...)
	if err != nil {
		return 0, false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return 0, false, err
	}
	id, err = res.LastInsertId()
	return id, true, err
}

// execOnce runs a statement that is not worth preparing.
func (t *tx) execOnce(text string) (sql.Result, error) { return t.conn.ExecContext(t.ctx, text) }

func (t *tx) query(text string, args ...any) (*sql.Rows, error) {
	stmt, err := t.stmt(text)
	switch {
	case err != nil:
		return nil, err
	case stmt != nil:
		return stmt.QueryContext(t.ctx, t.d.args(args)...)
	default:
		return t.conn.QueryContext(t.ctx, t.d.sql(text), t.d.args(args)...)
	}
}

// row scans the first row of a query; ok is false when there is none.
func (t *tx) row(dest []any, text string, args ...any) (ok bool, err error) {
	rows, err := t.query(text, args...)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return false, rows.Err()
	}
	return true, rows.Scan(dest...)
}

// stmt returns the prepared statement, where the driver does not keep its own.
func (t *tx) stmt(text string) (*sql.Stmt, error) {
	if t.prepared == nil {
		return nil, nil
	}
	if s := t.prepared[text]; s != nil {
		return s, nil
	}
	s, err := t.conn.PrepareContext(t.ctx, t.d.sql(text))
	if err != nil {
		return nil, err
	}
	t.prepared[text] = s
	return s, nil
}

// each calls f for every row and closes rows.
func each(rows *sql.Rows, f func(*sql.Rows) error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
