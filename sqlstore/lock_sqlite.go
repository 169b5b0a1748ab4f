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

func (sqlite) lockSchema(*tx) error { return nil }

// The lower bytes of codes: SQLITE_BUSY is that of a file which another process has
// written to for longer than the busy timeout, SQLITE_READONLY that of one which this
// user may only read.
const (
	busy     = 5
	readOnly = 8
)

// occupied goes by the code: the process that has the file may change its schema, and
// take longer than the busy timeout.
func (sqlite) occupied(err error) bool { return sqliteCode(err) == busy }

// denied goes by the code.
func (sqlite) denied(err error) bool { return sqliteCode(err) == readOnly }

// elsewhere is never so: a file has no standby.
func (sqlite) elsewhere(error) bool { return false }

// sqliteCode returns the lower byte of an error's code, which each driver has in its
// own way: this is modernc.org/sqlite's. It is 0 where there is none.
func sqliteCode(err error) int {
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return 0
	}
	return coded.Code() & 0xff
}
