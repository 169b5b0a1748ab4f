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

// endedIdle is never so: no server watches over a file.
func (sqlite) endedIdle(error) bool { return false }

// occupied is never so: a file has one writer at a time.
func (sqlite) occupied(error) bool { return false }

func (sqlite) lockSchema(*tx) error { return nil }

// readOnly is SQLITE_READONLY, the lower byte of the codes of a file that this user
// may only read.
const readOnly = 8

// denied goes by the code, which each driver has in its own way: this is
// modernc.org/sqlite's.
func (sqlite) denied(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == readOnly
}
