// Package database opens the database that serve and the commands work on. The
// drivers enter forbear here.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

// DB is an open database with its store. It is safe for concurrent use. SQLite has
// two pools: one connection that writes, as it allows no second writer, and a few
// that read meanwhile.
type DB struct {
	*sqlstore.DB
	name   string // as it may be shown
	server bool
	pools  []*sql.DB
	mended string // the file, if other users of the machine could read it until now
	open   string // the file, if they can and it is an application's as well
	health health
}

// Use says how a database is opened. The zero value is for a command that may only
// read: it works on a standby, too.
type Use struct {
	// Writes says that the process goes on writing: it connects to no server that takes
	// no writes.
	Writes bool
	// Shared allows to add forbear's tables to an SQLite file of an application.
	Shared bool
}

// Readers returns how many may read at once: one more waits.
func (d *DB) Readers() int { return d.pools[len(d.pools)-1].Stats().MaxOpenConnections }

// Close ends the writes under way and closes the pools.
func (d *DB) Close() error {
	d.health.end()
	errs := []error{d.DB.Close()}
	for _, p := range d.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Note logs what opening the database has changed about its file.
func (d *DB) Note(log *slog.Logger) {
	if d.mended != "" {
		log.Warn("other users of this machine could read the database: its mode is 0600 now", slog.String("database", d.mended))
	}
	if d.open != "" {
		log.Warn("other users of this machine can read the database: its mode stays, since an application uses it too", slog.String("database", d.open))
	}
}

// Open is OpenFor with the zero Use.
func Open(ctx context.Context, name string, opts ...sqlstore.Option) (*DB, error) {
	return OpenFor(ctx, name, Use{}, opts...)
}

// OpenFor opens a PostgreSQL database by its URL or keywords, or an SQLite file by its
// path. The schema is as it is: see Migrate. Errors do not show a password.
func OpenFor(ctx context.Context, name string, use Use, opts ...sqlstore.Option) (*DB, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	if isServer(name) {
		return openPostgres(ctx, name, use, opts)
	}
	return openSQLite(ctx, name, use, opts)
}

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
		if db.mended, db.open, err = place(path, holds.others); err != nil {
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
	read, err := sql.Open("sqlite", readName)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", name, err), write.Close())
	}
	read.SetMaxOpenConns(4)
	db.DB, db.pools = sqlstore.SQLite(write, read, opts...), []*sql.DB{write, read}
	return db, nil
}
