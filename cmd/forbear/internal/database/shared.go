package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// ErrShared is in the chain of errors about an SQLite file of an application, on which
// no forbear has worked. Its text names what allows it.
var ErrShared = errors.New("forbear would add its tables and change the file to WAL; allow that with --shared-database, as for an outbox in the application's own file, or name another file")

// tenancy is what an SQLite file holds before it is opened.
type tenancy struct {
	others bool // tables that are not forbear's
	ours   bool // forbear's
}

// look reads what an SQLite file holds, and changes nothing about it. One that is not
// there, or is empty, holds nothing.
func look(ctx context.Context, path string) (t tenancy, err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return t, nil // what is wrong with it is found when it is opened
	}
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=rw&_pragma=busy_timeout(5000)&_pragma=query_only(1)"
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return t, err
	}
	err = db.QueryRowContext(ctx, `SELECT COALESCE(max(name LIKE 'forbear\_%' ESCAPE '\'), 0), COALESCE(max(name NOT LIKE 'forbear\_%' ESCAPE '\'), 0)
		FROM sqlite_master WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'`).Scan(&t.ours, &t.others)
	return t, errors.Join(err, db.Close())
}

// allowed refuses a file of an application's in which there is nothing of forbear's yet,
// unless whoever opens it has allowed that.
func (t tenancy) allowed(path string, use Use) error {
	if !t.others || t.ours || use.Shared {
		return nil
	}
	return fmt.Errorf("database %s holds the tables of an application, and none of forbear's: %w", path, ErrShared)
}
