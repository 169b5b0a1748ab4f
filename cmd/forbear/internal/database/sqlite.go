package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/forbear-go/forbear/sqlstore"
)

// openSQLite opens the pools of a file.
func openSQLite(ctx context.Context, name string, use Use, opts []sqlstore.Option) (*DB, error) {
	db := &DB{name: name}
	holds := tenancy{}
	if path, ok := filePath(name); ok {
		var err error
		if holds, err = look(ctx, path); err != nil {
			return nil, opening(name, err)
		}
		if err := holds.allowed(path, use); err != nil {
			return nil, err
		}
		if db.note, err = place(path, holds.others); err != nil {
			return nil, err
		}
	}
	writeName, readName := sqlstore.SQLiteNames(name)
	write, err := sql.Open("sqlite", writeName)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", name, err)
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil { // makes what is beside the file
		return nil, errors.Join(opening(name, err), write.Close())
	}
	db.switched = holds.others && holds.mode != "wal"
	read, err := sql.Open("sqlite", readName)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", name, err), write.Close())
	}
	read.SetMaxOpenConns(4)
	db.DB, db.pools = sqlstore.SQLite(write, read, opts...), []*sql.DB{write, read}
	return db, nil
}

// ErrShared is in the chain of errors about an SQLite file of an application, on which
// no forbear has worked. Its text names what allows it.
var ErrShared = errors.New("nothing was changed; add --shared-database to add forbear's tables and switch the file to WAL mode (run both programs as one user, or in one group that can write to the file and its folder), or name another file or a postgres:// URL")

// tenancy is what an SQLite file holds before it is opened.
type tenancy struct {
	others bool   // tables that are not forbear's
	ours   bool   // forbear's
	mode   string // of its journal
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
	if err == nil {
		err = db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&t.mode)
	}
	return t, errors.Join(err, db.Close())
}

// allowed refuses an application's file that has no tables of forbear's yet, unless use
// allows it.
func (t tenancy) allowed(path string, use Use) error {
	if !t.others || t.ours || use.Shared {
		return nil
	}
	return fmt.Errorf("database %s has tables of an application and none of forbear: %w", path, ErrShared)
}
