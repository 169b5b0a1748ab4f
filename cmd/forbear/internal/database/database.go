// Package database opens the database that serve and the commands work on. The
// drivers enter forbear here.
package database

import (
	"context"
	"database/sql"
	"errors"
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
	note   string // what other users of the machine can read, or could: see Note
	// switched says that opening it changed an application's file to WAL.
	switched bool
	health   health
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

// Note logs whether other users of the machine can read the file, or could before it was
// opened, and whether the file of an application is in another mode now.
func (d *DB) Note(log *slog.Logger) {
	if d.note != "" {
		log.Warn(d.note, slog.String("database", d.name))
	}
	if d.switched {
		log.Info("the application's database file was switched to WAL mode: its programs need write access to the file and its folder", slog.String("database", d.name))
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
