package sqlstore

import (
	"context"
	"database/sql"
)

// Postgres opens the database behind a pool of PostgreSQL connections. The pool
// stays the caller's to close, after the database.
//
// Give the pool a bound that fits the server, SetMaxOpenConns(16) for example,
// and as many idle connections, and an age, SetConnMaxLifetime(5 * time.Minute): after a
// failover only new connections find the server that takes writes. One on which a server
// says that it takes none is given up; with target_session_attrs=read-write in the
// address none is opened to such a server. Without a bound the store takes at most a twelfth
// of the connections that the server has for the pool's user at once, beside its
// writers' six, and the transactions of [DB.Transactions] at most a sixth: what
// comes beyond that waits.
func Postgres(pool *sql.DB, opts ...Option) *DB {
	return open(postgres{}, pool, pool, opts)
}

// The number of writers in a process beside the ordered one. While one group of
// messages is being accepted the next gathers and is sent: with more writers the
// groups would be smaller, and each costs. Of the others one claims and two write
// back, mostly.
const (
	acceptWriters = 2
	otherWriters  = 3
)

// connections is the least of what the server, the database and the role allow,
// without what is kept for superusers.
func (postgres) connections(ctx context.Context, pool *sql.DB) (n int, err error) {
	err = pool.QueryRowContext(ctx, `SELECT min(n) FROM (
		SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
		UNION ALL SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user
		UNION ALL SELECT datconnlimit FROM pg_database WHERE datname = current_database()) x(n) WHERE n > 0`).Scan(&n)
	return n, err
}

// shrink leaves that to the server's vacuum, which makes room for what comes.
func (postgres) shrink(*tx) (bool, error) { return false, nil }

// start starts a few writers, and one of its own for writes that decide about
// the order of keys: several of those in one process would only wait for each
// other's keys.
func (postgres) start(db *DB, write *sql.DB) {
	// Other processes listen.
	db.notify.send = db.sendNotify
	db.records.open(db)
	db.accepts, db.ordered = make(chan *op, maxGroup), make(chan *op, maxGroup)
	db.startWriter(write, db.ordered, nil)
	accepting := new(turns)
	for range acceptWriters {
		db.startWriter(write, db.accepts, accepting)
	}
	for range otherWriters {
		db.startWriter(write, db.ops, nil)
	}
}

func (postgres) overwrite(*tx, bool) error { return nil }

func (postgres) overwritten(context.Context, *DB) {}
