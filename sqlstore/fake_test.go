package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"testing"
	"time"
)

// fake is a driver that writes down the statements that it gets, in their order,
// and fails on demand. It is no database: what comes back is what the test
// says. It is for one goroutine.
type fake struct {
	log   []string // the beginning of each statement, or what a test notes
	conns int      // that were opened
	// fail returns the error of a statement, which it may count.
	fail func(text string) error
	// rows returns what a query finds.
	rows func(text string) [][]driver.Value
}

func (f *fake) Connect(context.Context) (driver.Conn, error) {
	f.conns++
	return fakeConn{f}, nil
}

func (f *fake) Driver() driver.Driver { return nil }

func (f *fake) note(line string) { f.log = append(f.log, line) }

// run notes a statement by its first word or two.
func (f *fake) run(text string) error {
	words := strings.Fields(text)
	f.note(strings.Join(words[:min(2, len(words))], " "))
	if f.fail != nil {
		return f.fail(text)
	}
	return nil
}

type fakeConn struct{ f *fake }

func (c fakeConn) Prepare(text string) (driver.Stmt, error) { return fakeStmt{c.f, text}, nil }
func (fakeConn) Close() error                               { return nil }
func (fakeConn) Begin() (driver.Tx, error)                  { return nil, driver.ErrSkip }

type fakeStmt struct {
	f    *fake
	text string
}

func (fakeStmt) Close() error  { return nil }
func (fakeStmt) NumInput() int { return -1 }

func (s fakeStmt) Exec([]driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), s.f.run(s.text)
}

func (s fakeStmt) Query([]driver.Value) (driver.Rows, error) {
	err := s.f.run(s.text)
	rows := &fakeRows{}
	if s.f.rows != nil {
		rows.left = s.f.rows(s.text)
	}
	return rows, err
}

type fakeRows struct{ left [][]driver.Value }

// Columns names as many columns as the next row has.
func (r *fakeRows) Columns() []string {
	if len(r.left) == 0 {
		return nil
	}
	return make([]string, len(r.left[0]))
}

func (r *fakeRows) Close() error { return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	copy(dest, r.left[0])
	r.left = r.left[1:]
	return nil
}

// fakeWriter returns a writer on a fake database. Its loop does not run: a test
// commits groups by hand.
func fakeWriter(t *testing.T, d dialect) (*writer, *fake) {
	t.Helper()
	f := &fake{}
	pool := sql.OpenDB(f)
	t.Cleanup(func() { _ = pool.Close() })
	w := &writer{db: &DB{d: d, now: time.Now, reads: pool}, pool: pool}
	t.Cleanup(w.drop)
	return w, f
}

// op is a write that consists of one statement.
func (f *fake) op(statement string) *op {
	return &op{done: make(chan error, 1), run: func(t *tx) error {
		_, err := t.exec(statement)
		return err
	}}
}
