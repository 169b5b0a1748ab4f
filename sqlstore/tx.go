package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
)

// tx is a transaction, or a connection on which each statement is one, as the
// concepts see it. It belongs to one goroutine.
type tx struct {
	ctx      context.Context //nolint:containedctx // the group's, set by the writer
	db       *DB
	conn     session
	prepared map[string]*sql.Stmt // by text, where the driver does not keep its own; nil: not
	alerts   []queue.Alert        // raised at the end of the transaction
	until    time.Time            // when a writer's connection has been used for long enough; zero: never
	log      os.FileInfo          // the write-ahead log of an SQLite file; nil: not seen yet
}

// session is a connection, or a transaction on one. While a transaction is
// open the connection below it is not to be asked: database/sql would wait for
// itself when that is broken.
type session interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
}

// exec runs a statement and returns the number of rows that it changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	stmt, args, err := t.prepare(text, args)
	var res sql.Result
	switch {
	case err != nil:
	case stmt != nil:
		res, err = stmt.ExecContext(t.ctx, args...)
	default:
		res, err = t.conn.ExecContext(t.ctx, t.db.sql(text), args...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// execOnce runs a statement that is not worth preparing.
func (t *tx) execOnce(text string) error {
	_, err := t.conn.ExecContext(t.ctx, text)
	return err
}

// query runs a query; its rows are the caller's to close.
func (t *tx) query(text string, args ...any) (*sql.Rows, error) {
	stmt, args, err := t.prepare(text, args)
	switch {
	case err != nil:
		return nil, err
	case stmt != nil:
		return stmt.QueryContext(t.ctx, args...)
	default:
		return t.conn.QueryContext(t.ctx, t.db.sql(text), args...)
	}
}

// each calls f for every row of a query. The connection has one conversation at
// a time: f runs no statement of its own.
func (t *tx) each(f func(*sql.Rows) error, text string, args ...any) error {
	rows, err := t.query(text, args...)
	if err != nil {
		return err
	}
	return each(rows, f)
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

// prepare returns the arguments as the driver takes them, and the prepared
// statement, where the driver does not keep its own.
func (t *tx) prepare(text string, args []any) (*sql.Stmt, []any, error) {
	args, err := t.db.args(args)
	if err != nil || t.prepared == nil {
		return nil, args, err
	}
	s := t.prepared[text]
	if s == nil {
		if s, err = t.conn.PrepareContext(t.ctx, t.db.sql(text)); err != nil {
			return nil, nil, err
		}
		t.prepared[text] = s
	}
	return s, args, nil
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

// asker is the each of a transaction, or that of a database outside of any.
type asker = func(f func(*sql.Rows) error, text string, args ...any) error

// into makes of scan, which reads one row, what each wants to fill a list.
func into[T any](list *[]T, scan func(*sql.Rows) (T, error)) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		v, err := scan(r)
		if err == nil {
			*list = append(*list, v)
		}
		return err
	}
}

// collect scans all rows of a query of a transaction.
func collect[T any](t *tx, scan func(*sql.Rows) (T, error), text string, args ...any) (list []T, err error) {
	err = t.each(into(&list, scan), text, args...)
	return list, err
}

// readAll is collect, outside of transactions.
func readAll[T any](ctx context.Context, db *DB, scan func(*sql.Rows) (T, error), text string, args ...any) (list []T, err error) {
	err = db.each(ctx, into(&list, scan), text, args...)
	return list, err
}

// first returns what was found under a key, or missing when there is nothing.
func first[T any](list []T, err, missing error) (v T, _ error) {
	if err == nil && len(list) == 0 {
		err = missing
	}
	if err != nil {
		return v, err
	}
	return list[0], nil
}

// one scans a row of one column.
func one[T any](r *sql.Rows) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}

// placeholders returns "?, ?, ?".
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// errOwn marks errors that the store returns by itself: a replay would only
// repeat them.
var errOwn = errors.New("refused by the store")

// markedError adds a mark to what it is, without a word of its own.
type markedError struct {
	error
	mark error
}

func (e markedError) Unwrap() error { return e.error }

func (e markedError) Is(target error) bool { return target == e.mark }

// own marks err as the store's own.
func own(err error) error { return markedError{err, errOwn} }
