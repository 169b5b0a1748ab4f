package sqlstore

import (
	"hash/fnv"
	"io"
)

// The order of a key is decided under a lock: which of its messages came first,
// and which may go next. Keys share 64 locks. A transaction takes those that it
// needs at its beginning, in the order of their numbers, so that no two
// transactions can wait for each other, and no number of keys exhausts the
// server's table of locks. SQLite has one writer anyway.

// lockClass is the class of PostgreSQL's advisory locks that are ours.
const lockClass = 0x666f7262

// The locks of what one process does at a time.
const (
	relayLock = 64 + iota // empty the outbox
	sweepLock             // delete what is old
)

// keyLocks is a set of locks.
type keyLocks uint64

// add adds the lock of a key.
func (k *keyLocks) add(endpoint, key string) {
	h := fnv.New64a()
	_, _ = io.WriteString(h, endpoint+"\n"+key)
	*k |= 1 << (h.Sum64() % 64)
}

// lockKeys waits for the locks, and holds them until the transaction ends.
func (t *tx) lockKeys(k keyLocks) error {
	if k == 0 || !t.d.postgres {
		return nil
	}
	_, err := t.exec(`SELECT pg_advisory_xact_lock(?, n) FROM (SELECT n FROM generate_series(0, 63) n WHERE (?::bigint >> n) & 1 = 1 ORDER BY n) x`, lockClass, int64(k))
	return err
}

// tryLock reports whether the lock was free. It is held until the transaction
// ends.
func (t *tx) tryLock(n int) (ok bool, err error) {
	if !t.d.postgres {
		return true, nil
	}
	_, err = t.row([]any{&ok}, `SELECT pg_try_advisory_xact_lock(?, ?)`, lockClass, n)
	return ok, err
}
