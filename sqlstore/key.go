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

// keyLocks is a set of locks.
type keyLocks uint64

// keyLockCount is the number of locks that keys share.
const keyLockCount = 64

// The locks of what one process does at a time.
const (
	relayLock    = keyLockCount + iota // empty the outbox
	sweepLock                          // delete what is old
	endpointLock                       // number a change of an endpoint
	memberLock                         // count the processes
	holdLock                           // number a change of a hold
)

// add adds the lock of a key.
func (k *keyLocks) add(endpoint, key string) {
	// All processes must come to the same number: the hash is part of the
	// protocol between them.
	h := fnv.New64a()
	_, _ = io.WriteString(h, endpoint+"\n"+key)
	*k |= 1 << (h.Sum64() % keyLockCount)
}

// place is the state of a delivery that comes behind all others of its key: it
// is held while one of them is not finished. The transaction holds the key's
// lock.
func (t *tx) place(endpoint, key string) (rowState, error) {
	var one int
	busy, err := t.row([]any{&one}, `SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND okey = ? AND `+stateUnfinished+` LIMIT 1`, endpoint, key)
	if busy {
		return held, err
	}
	return waiting, err
}

// promote lets the next message of each key go, whose locks the transaction
// holds. The states are written twice for SQLite, which takes a partial index only
// for its own words.
func (t *tx) promote(keys []ordering) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := t.exec(`UPDATE forbear_deliveries SET `+stateWaiting+` WHERE id IN (
		SELECT (SELECT min(h.id) FROM forbear_deliveries h WHERE h.endpoint = x.e AND h.okey = x.k AND h.`+stateUnfinished+` AND h.`+stateHeld+`)
		FROM {keys} WHERE NOT EXISTS (SELECT 1 FROM forbear_deliveries a WHERE a.endpoint = x.e AND a.okey = x.k AND a.`+stateActive+`))`, asJSON{keys})
	return err
}
