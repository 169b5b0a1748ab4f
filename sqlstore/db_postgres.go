package sqlstore

import (
	"database/sql"
	"time"
)

// Postgres returns a store over a pool of PostgreSQL connections. The pool
// stays the caller's to close, after the store.
func Postgres(db *sql.DB, opts ...Option) *Store {
	return open(&dialect{postgres: true, now: time.Now}, db, db, 4, opts)
}
