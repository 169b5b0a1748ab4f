package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
)

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

// placeholders returns "?, ?, ?".
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// errOwn marks errors that the store returns by itself: a replay would only
// repeat them.
var errOwn = errors.New("refused by the store")

type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

func (e ownError) Is(target error) bool { return target == errOwn }

// own marks err as the store's own.
func own(err error) error { return ownError{err} }
