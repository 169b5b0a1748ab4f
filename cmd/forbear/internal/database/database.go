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

// Note logs what opening the database has changed about its file.
func (d *DB) Note(log *slog.Logger) {
	if d.mended != "" {
		log.Warn("other users of this machine could read the database: its mode is 0600 now", slog.String("database", d.mended))
	}
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
