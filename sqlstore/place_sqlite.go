package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrMoved refuses writes to an SQLite file that is not where it was opened: it was
// moved, replaced or deleted, and SQLite would go on writing what no one could find
// again. Nothing is acknowledged until the same file is back in its place, or the
// program is started anew with the file that is there.
var ErrMoved = errors.New("the database file was moved, replaced or deleted while it was open: put it back, or restart to use the new one")

// whereabouts is where the file of a database was when it was opened. SQLite goes on with a
// file by its descriptor, whatever happens to its name. The zero value, of a database in
// memory, is always there.
type whereabouts struct {
	path string
	file os.FileInfo
}

// findTime bounds the question for the name, which takes no lock.
const findTime = 10 * time.Second

// placeOf asks SQLite which file it has open.
func placeOf(pool *sql.DB) (p whereabouts) {
	ctx, cancel := context.WithTimeout(context.Background(), findTime)
	defer cancel()
	var n int
	var name, path string
	if err := pool.QueryRowContext(ctx, "PRAGMA database_list").Scan(&n, &name, &path); err != nil || path == "" {
		return p
	}
	if info, err := os.Stat(path); err == nil {
		p.path, p.file = path, info
	}
	return p
}

// check returns ErrMoved when the file, or the write-ahead log that the connection of t
// writes to, is not where it was. SQLite keeps the log for as long as a connection is
// open, so that another one under its name is none of ours. Two looks at the file system
// are nothing beside a commit.
func (p *whereabouts) check(t *tx) error {
	if p.file == nil {
		return nil
	}
	if info, err := os.Stat(p.path); err != nil || !os.SameFile(info, p.file) {
		return fmt.Errorf("%s: %w", p.path, ErrMoved)
	}
	if t == nil {
		return nil
	}
	info, err := os.Stat(p.path + "-wal")
	switch {
	case t.log == nil && err == nil:
		t.log = info
	case t.log != nil && (err != nil || !os.SameFile(info, t.log)):
		return fmt.Errorf("%s-wal: %w", p.path, ErrMoved)
	}
	return nil
}
