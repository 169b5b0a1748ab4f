package sqlstore

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

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

func (postgres) lock(t *tx, n int) error {
	_, err := t.exec(`SELECT pg_advisory_xact_lock(?, ?)`, lockClass, n)
	return err
}

// tryLock does not wait: another process does the work already.
func (postgres) tryLock(t *tx, n int) (ok bool, err error) {
	_, err = t.row([]any{&ok}, `SELECT pg_try_advisory_xact_lock(?, ?)`, lockClass, n)
	return ok, err
}

// tryLockRecord is free for the first of the duplicates of a request. The others
// are turned away instead of waiting, each with a connection of the pool. The
// same round trip gives the transaction its limits, which end with it: a process
// that is frozen holds its locks no longer than the lease, and a statement waits
// no longer than that for a lock of another's.
func (postgres) tryLockRecord(t *tx, id idempotency.ID, lease time.Duration) (ok bool, err error) {
	limit := strconv.FormatInt(min(max(lease.Milliseconds(), 1), math.MaxInt32), 10)
	var idle, wait string
	_, err = t.row([]any{&ok, &idle, &wait}, `SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, ?::bigint)),
		set_config('idle_in_transaction_session_timeout', ?::text, true), set_config('lock_timeout', ?::text, true)`,
		id.Scope+"\n"+id.Key, recordSeed, limit, limit)
	return ok, err
}

// schemaWait is how long a step waits for a table, in milliseconds. All that comes
// after it waits meanwhile, and is let by when it gives up. It is less than
// deadlock_timeout has by default: a step that waits for a transaction which waits for
// a table that the step has already gives up before PostgreSQL ends the transaction.
const schemaWait = "400"

// lockSchema does not wait: who has the lock may have it for an hour, and what waits in
// the server hears of no one's end.
func (postgres) lockSchema(t *tx) error {
	free, limit := false, ""
	if _, err := t.row([]any{&free, &limit}, `SELECT pg_try_advisory_xact_lock(?::bigint), set_config('lock_timeout', ?::text, true)`, schemaLock, schemaWait); err != nil {
		return err
	}
	if !free {
		return errMigrating
	}
	return nil
}

// fault goes by the code, which errors of the server have and those of the network have
// not. Each driver has it.
func (postgres) fault(err error) fault {
	var coded interface{ SQLState() string }
	switch {
	case errors.Is(err, errMigrating):
		return occupied
	case !errors.As(err, &coded):
		return 0
	}
	switch coded.SQLState() {
	case "25P03": // idle_in_transaction_session_timeout
		return refused | endedIdle
	case "55P03": // lock_not_available: it waited for lock_timeout
		return refused | occupied
	case "25006": // read_only_sql_transaction: the server only replays another's log
		return refused | elsewhere | denied
	case "42501": // insufficient_privilege
		return refused | denied
	}
	return refused
}
