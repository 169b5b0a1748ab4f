package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/sqlstore"
)

// ErrServer refuses for a database on a server what is for files: the server has
// means of its own.
var ErrServer = errors.New("it is on a server, and this works only on SQLite files")

// Backup writes a copy of an SQLite file, as it is at one moment, while others work on
// it. The copy is new, its owner's alone, and synced.
func Backup(ctx context.Context, name, to string) error {
	db, err := openFile(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	// SQLite takes an empty file: no umask makes this one wider than private.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, private)
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(private), f.Close())
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	}
	if err == nil {
		err = errors.Join(syncFile(to), syncFile(filepath.Dir(to)))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backup of %s: %w", name, err), os.Remove(to))
	}
	return nil
}

// Shrink rewrites an SQLite file without its free pages, so that from then on it gives
// back by itself what becomes free. No other process can write meanwhile, and there has
// to be room for a copy.
func Shrink(ctx context.Context, name string) (before, after int64, err error) {
	db, err := openFile(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = db.Close() }()
	path, _ := filePath(name)
	if before, err = size(path); err != nil {
		return 0, 0, err
	}
	for _, text := range []string{"PRAGMA auto_vacuum = 2", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return 0, 0, fmt.Errorf("shrink %s: %w", name, err)
		}
	}
	after, err = size(path)
	return before, after, err
}

// openFile opens an SQLite file that is there, with one connection.
func openFile(ctx context.Context, name string) (*sql.DB, error) {
	path, ok := filePath(name)
	switch {
	case isServer(name):
		return nil, fmt.Errorf("database %s: %w", Name(name), ErrServer)
	case check(name) != nil:
		return nil, check(name)
	case !ok:
		return nil, fmt.Errorf("database %s is not a plain file", name)
	}
	if err := Exists(path); err != nil {
		return nil, err
	}
	source, _ := sqlstore.SQLiteNames(name)
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // pragmas are a connection's
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(opening(name, err), db.Close())
	}
	return db, nil
}

func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// syncFile makes a file, or what a folder lists, survive a power cut.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
