package sqlstore

import "github.com/forbear-go/forbear/idempotency"

// A transaction of SQLite's one writer has all locks.

func (sqlite) lockKeys(*tx, keyLocks) error { return nil }

func (sqlite) tryLock(*tx, int) (bool, error) { return true, nil }

func (sqlite) tryLockRecord(*tx, idempotency.ID) (bool, error) { return true, nil }

func (sqlite) lockSchema(*tx) error { return nil }
