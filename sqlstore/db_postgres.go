package sqlstore

import "database/sql"

// Postgres opens the database behind a pool of PostgreSQL connections. The pool
// stays the caller's to close, after the database.
func Postgres(pool *sql.DB, opts ...Option) *DB {
	return open(postgres{}, pool, pool, opts)
}

// postgresWriters is the number of writers in a process beside the ordered one:
// while one waits for the server to sync its commit the others gather.
const postgresWriters = 4

// start starts a few writers, and one of its own for writes that decide about
// the order of keys: several of those in one process would only wait for each
// other's keys.
func (postgres) start(db *DB, write *sql.DB) {
	// Other processes listen.
	db.notify.send = db.sendNotify
	db.ordered = make(chan *op, maxGroup)
	db.startWriter(write, db.ordered)
	for range postgresWriters {
		db.startWriter(write, db.ops)
	}
}
