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
