package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// errUnderWay refuses a transaction while an earlier one of the same record has not
// ended yet, such as that of a process that is frozen.
var errUnderWay = errors.New("an earlier transaction of this record has not ended yet")

// Begin implements consume.Transactor. The transaction is on the pool, and under the
// limits, of [DB.Transactions].
func (x *Transactions) Begin(ctx context.Context, k idempotency.Token, lease time.Duration) (txn *sql.Tx, release func(), err error) {
	if release, err = x.slots.take(ctx); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			release()
			release = nil
		}
	}()
	if txn, err = x.pool.BeginTx(ctx, nil); err != nil {
		return nil, release, err
	}
	t := &tx{ctx: ctx, db: x.db, conn: txn}
	free, err := x.db.d.tryLockRecord(t, k.ID, lease)
	if err == nil && !free {
		err = errUnderWay
	}
	if err != nil {
		return nil, release, errors.Join(err, txn.Rollback())
	}
	return txn, release, nil
}

// CompleteIn implements consume.Transactor. One statement compares and writes the
// record. It waits for another run of the same event that is being committed: of two
// that did the same work only one can be.
func (x *Transactions) CompleteIn(ctx context.Context, txn *sql.Tx, k idempotency.Token, a idempotency.Response, retention time.Duration) error {
	header, body, err := x.db.sealResponse(k.ID, a)
	if err != nil {
		return err
	}
	t := &tx{ctx: ctx, db: x.db, conn: txn}
	return x.ended(t.updateHeld(k, setCompleted, a.Status, header, body, a.Tombstone, after(0), after(retention)), false)
}
