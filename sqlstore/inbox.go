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
		return nil, release, errors.Join(err, rollback(txn))
	}
	return txn, release, nil
}

// CompleteIn implements consume.Transactor. One statement compares and writes the
// record. It waits for another run of the same event that is being committed: of two
// that did the same work only one can be.
func (x *Transactions) CompleteIn(ctx context.Context, txn *sql.Tx, k idempotency.Token, a idempotency.Response, retention time.Duration) error {
	t := &tx{ctx: ctx, db: x.db, conn: txn}
	return x.ended(t.complete(k, a, retention), false)
}

// rollback rolls a transaction back that may have ended by itself.
func rollback(txn *sql.Tx) error {
	if err := txn.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// complete stores the response of the record that k holds, in the transaction of the
// handler's writes.
func (t *tx) complete(k idempotency.Token, a idempotency.Response, retention time.Duration) error {
	header, body, err := t.db.sealResponse(k.ID, a)
	if err != nil {
		return err
	}
	return t.updateHeld(k, setCompleted, a.Status, header, body, a.Tombstone, after(0), after(retention))
}
