package sqlstore

import "github.com/forbear-go/forbear/idempotency"

// Advisory locks belong to a transaction here, and end with it: a process that
// dies leaves none behind.

const (
	// lockClass is the class of PostgreSQL's advisory locks that are ours.
	lockClass = 0x666f7262
	// schemaLock is the lock under which the schema changes.
	schemaLock int64 = 0x666f72626561
	// recordSeed keeps the locks of idempotency records apart from others that
	// an application may hash in the same manner.
	recordSeed = 11
)

// lockKeys takes the locks in the order of their numbers, in one round trip.
func (postgres) lockKeys(t *tx, k keyLocks) error {
	if k == 0 {
		return nil
	}
	_, err := t.exec(`SELECT pg_advisory_xact_lock(?, n) FROM (SELECT n FROM generate_series(0, 63) n WHERE (?::bigint >> n) & 1 = 1 ORDER BY n) x`, lockClass, int64(k))
	return err
}

// tryLock does not wait: another process does the work already.
func (postgres) tryLock(t *tx, n int) (ok bool, err error) {
	_, err = t.row([]any{&ok}, `SELECT pg_try_advisory_xact_lock(?, ?)`, lockClass, n)
	return ok, err
}

// tryLockRecord is free for the first of the duplicates of a request. The others
// are turned away instead of waiting, each with a connection of the pool.
func (postgres) tryLockRecord(t *tx, id idempotency.ID) (ok bool, err error) {
	_, err = t.row([]any{&ok}, `SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, ?::bigint))`, id.Scope+"\n"+id.Key, recordSeed)
	return ok, err
}

// lockSchema waits: the process that migrates will be done in a while, and the
// others find their schema up to date.
func (postgres) lockSchema(t *tx) error {
	_, err := t.exec(`SELECT pg_advisory_xact_lock(?)`, schemaLock)
	return err
}
