// Package database opens the database that serve and the commands work on. The
// drivers enter forbear here.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/forbear-go/forbear/sqlstore"
)

// DB is an open database with its store. It is safe for concurrent use. SQLite has
// two pools: one connection that writes, as it allows no second writer, and a few
// that read meanwhile.
type DB struct {
	*sqlstore.DB
	name   string // as it may be shown
	pools  []*sql.DB
	mended string // the file, if other users of the machine could read it until now
}

// Close ends the writes under way and closes the pools.
func (d *DB) Close() error {
	errs := []error{d.DB.Close()}
	for _, p := range d.pools {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Pending names the steps of the schema that a database in use lacks. An empty
// database lacks nothing yet.
func (d *DB) Pending(ctx context.Context) (names []string, err error) {
	list, err := d.Migrations(ctx)
	used := false
	for _, m := range list {
		if used = used || !m.Applied.IsZero(); m.Applied.IsZero() {
			names = append(names, m.String())
		}
	}
	if !used {
		names = nil
	}
	return names, err
}

// Note logs what opening the database has changed about its file.
func (d *DB) Note(log *slog.Logger) {
	if d.mended != "" {
		log.Warn("other users of this machine could read the database: its mode is 0600 now", slog.String("database", d.mended))
	}
}

// Update brings the schema up to date. With much in the database that takes a
// while, which the log says beforehand: an operator must not take it for a hang.
func (d *DB) Update(ctx context.Context, log *slog.Logger) error {
	d.Note(log)
	steps, err := d.Pending(ctx)
	if err == nil && len(steps) > 0 {
		log.Info("bringing the database up to date: some 20 s for a million messages", slog.String("steps", strings.Join(steps, ", ")))
	}
	if err == nil {
		_, err = d.Migrate(ctx)
	}
	if errors.Is(err, sqlstore.ErrRights) {
		return fmt.Errorf("database schema: %w: run forbear migrate --database %s as a user that may: on PostgreSQL the owner of its tables", err, d.name)
	}
	if err != nil {
		return fmt.Errorf("database schema: %w", err)
	}
	return nil
}

// UpdateBeside is Update, but where beside is set it refuses a database in use that
// lacks a step: another process works on it, which knows the former schema only.
func (d *DB) UpdateBeside(ctx context.Context, log *slog.Logger, beside bool) error {
	if beside {
		steps, err := d.Pending(ctx)
		if err != nil {
			return fmt.Errorf("database schema: %w", err)
		}
		if len(steps) > 0 {
			return fmt.Errorf("database schema: it lacks %s, and a process of the former version works on it: stop that one and start anew", strings.Join(steps, ", "))
		}
	}
	return d.Update(ctx, log)
}

// Open opens a PostgreSQL database by its URL, or an SQLite file by its path.
// The schema is as it is: see Migrate. Errors do not show the URL's password.
func Open(ctx context.Context, name string, opts ...sqlstore.Option) (*DB, error) {
	if isServer(name) {
		return openPostgres(ctx, name, opts)
	}
	if strings.Contains(name, "://") {
		return nil, fmt.Errorf("database %q: want postgres://... or the path of an SQLite file", redact(name))
	}
	return openSQLite(ctx, name, opts)
}

// isServer reports whether a name is that of a PostgreSQL database.
func isServer(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Name returns what may be shown of a database's name: a path, or a URL's place.
func Name(name string) string {
	if strings.Contains(name, "://") {
		return redact(name)
	}
	return name
}

// redact hides what a URL may hold besides its place.
func redact(name string) string {
	u, err := url.Parse(name)
	if err != nil {
		return "(unreadable)"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// openSQLite opens the pools of a file.
func openSQLite(ctx context.Context, path string, opts []sqlstore.Option) (*DB, error) {
	mended, err := place(path)
	if err != nil {
		return nil, err
	}
	writeName, readName := sqlstore.SQLiteNames(path)
	write, err := sql.Open("sqlite", writeName)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil { // makes what is beside the file
		return nil, errors.Join(opening(path, err), write.Close())
	}
	read, err := sql.Open("sqlite", readName)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", path, err), write.Close())
	}
	read.SetMaxOpenConns(4)
	return &DB{name: path, DB: sqlstore.SQLite(write, read, opts...), pools: []*sql.DB{write, read}, mended: mended}, nil
}

// openPostgres opens a pool, small enough that a few processes fit into a server's
// default of 100 connections.
func openPostgres(ctx context.Context, name string, opts []sqlstore.Option) (*DB, error) {
	cfg, err := pgx.ParseConfig(name)
	if err != nil {
		return nil, fmt.Errorf("database %s: the URL cannot be read", redact(name))
	}
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(8)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s cannot be reached: %w", redact(name), err), pool.Close())
	}
	listen := func(ctx context.Context, channel string, wake func(string)) error {
		return listen(ctx, cfg, channel, wake)
	}
	opts = append([]sqlstore.Option{sqlstore.WithListener(listen)}, opts...)
	return &DB{name: redact(name), DB: sqlstore.Postgres(pool, opts...), pools: []*sql.DB{pool}}, nil
}

// listen waits for notifications on a connection of its own.
func listen(ctx context.Context, cfg *pgx.ConnConfig, channel string, wake func(payload string)) error {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	wake("") // for what happened before
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		wake(n.Payload)
	}
}

// UpToDate refuses a database of an earlier version. Processes of that version may
// be at work on it, and could not go on with another schema; only an operator knows
// when they have stopped. One that is empty is set up.
func (db *DB) UpToDate(ctx context.Context) error {
	steps, err := db.Pending(ctx)
	switch {
	case err != nil:
		return err
	case len(steps) > 0:
		return fmt.Errorf("the database is of an earlier version and lacks %s: run forbear migrate when no process of that version works on it", strings.Join(steps, ", "))
	}
	_, err = db.Migrate(ctx)
	return err
}
