package sqlstore

import (
	"errors"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// A transaction of SQLite's one writer has all locks.

func (sqlite) lockKeys(*tx, keyLocks) error { return nil }

func (sqlite) lock(*tx, int) error { return nil }

func (sqlite) tryLock(*tx, int) (bool, error) { return true, nil }

func (sqlite) tryLockRecord(*tx, idempotency.ID, time.Duration) (bool, error) { return true, nil }

func (sqlite) lockSchema(*tx) error { return nil }

// fault goes by the lower byte of the code, which each driver has in its own way: this is
// modernc.org/sqlite's. SQLITE_BUSY is that of a file which another process has written to
// for longer than the busy timeout, since it changes the schema perhaps, and
// SQLITE_READONLY that of one which this user may only read.
func (sqlite) fault(err error) fault {
	const busy, readOnly = 5, 8
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return 0
	}
	switch coded.Code() & 0xff {
	case busy:
		return occupied
	case readOnly:
		return denied
	}
	return 0
}
