package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// Transactions is an [Idempotency] with the transaction mode: it implements
// idempotency.Transactor. Make it with [DB.Transactions]. It is safe for
// concurrent use.
type Transactions struct {
	*Idempotency
	pool  *sql.DB // the application's
	slots slots

	mu      sync.Mutex
	running map[idempotency.ID]*taken // in this process
}

// ErrLeaseOver refuses the end of a transaction that did nothing for longer than
// its claim's lease: PostgreSQL has ended it, and nothing of it is stored. It is
// an idempotency.ErrFenced.
var ErrLeaseOver = fmt.Errorf("transaction idle for longer than its lease: raise Lease, or do the work outside of it: %w", idempotency.ErrFenced)

// taken is a key on which transactions of this process run: one, or more when
// those before have lost their leases and do not know it yet.
type taken struct {
	runs int
	next time.Time // until then a duplicate need not ask the database
}

// busyFor is when a duplicate is to come back: no lease says how long a
// transaction takes.
const busyFor = time.Second

// Transactions returns the idempotency records together with the pool on which
// handlers run their transactions. It is a pool to the same database: on
// PostgreSQL the application's own; on SQLite one opened with the writing
// source name of [SQLiteNames], and not the one that the store writes with. On
// SQLite all transactions of a file wait for each other: short handlers only.
//
// On PostgreSQL the claim's lease bounds what a handler may hold: its
// transaction has idle_in_transaction_session_timeout and lock_timeout set to the
// lease. When the process is frozen, or the handler does nothing with its
// transaction for that long, the server ends it: the key is free, and a later
// commit is refused with [ErrLeaseOver]. A handler that needs longer between two
// statements needs a longer lease. SQLite has no server to do this: a frozen
// process holds the file's write lock.
func (db *DB) Transactions(pool *sql.DB) *Transactions {
	return &Transactions{Idempotency: db.Idempotency(), pool: pool, slots: slots{d: db.d, pool: pool, part: handlerPart}, running: map[idempotency.ID]*taken{}}
}

// begin registers a run, unless another is there whose lease may still hold.
// After that the database knows better, and is asked by one duplicate at a time.
func (x *Transactions) begin(id idempotency.ID, lease time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	k, now := x.running[id], time.Now()
	switch {
	case k == nil:
		k = &taken{next: now.Add(lease)}
		x.running[id] = k
	case now.Before(k.next):
		return false
	default:
		k.next = now.Add(busyFor)
	}
	k.runs++
	return true
}

// end lets another run begin.
func (x *Transactions) end(id idempotency.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running[id].runs--; x.running[id].runs == 0 {
		delete(x.running, id)
	}
}

// Transact implements idempotency.Transactor. Within the process a duplicate is
// turned away before it takes a connection; between processes PostgreSQL's
// advisory lock does it without a wait, and SQLite's one writer with one.
func (x *Transactions) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, *sql.Tx, idempotency.Record) (*idempotency.Response, error)) (v idempotency.Verdict, err error) {
	busy := idempotency.Verdict{Outcome: idempotency.InProgress, Record: idempotency.Record{ID: c.ID}, LeaseLeft: busyFor}
	if !x.begin(c.ID, c.Lease) {
		return busy, nil
	}
	// Registered before a connection is taken: duplicates that waited for one
	// could use them up.
	defer x.end(c.ID)
	txn, release, err := x.Begin(ctx, idempotency.Token{ID: c.ID}, c.Lease)
	switch {
	case errors.Is(err, errUnderWay):
		return busy, nil
	case err != nil:
		return v, err
	}
	defer release()
	committed := false
	defer func() {
		if !committed { // a panic of the handler comes this way too
			err = errors.Join(err, rollback(txn))
		}
	}()
	t, began := &tx{ctx: ctx, db: x.db, conn: txn}, time.Now()
	if v, err = t.claimRecord(c); err != nil {
		return v, err
	}
	// Anything else, a replay above all, has only read: the commit ends it.
	if v.Outcome == idempotency.Acquired {
		response, err := run(ctx, txn, v.Record)
		if err != nil || response == nil {
			return v, err
		}
		// In the transaction of the handler's writes: all of it is there, or nothing.
		k := idempotency.Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}
		if err := t.complete(k, *response, c.Retention); err != nil {
			return v, x.ended(err, time.Since(began) >= c.Lease)
		}
	}
	committed = true
	err = x.ended(txn.Commit(), false)
	if v.Outcome == idempotency.Acquired {
		x.db.ended(c.ID, err)
	}
	return v, err
}

// ended says ErrLeaseOver where the database ended the transaction for that. The
// first statement after it learns why; when that was the handler's, which went
// on, ours finds the connection gone. idle says that there was time for it.
func (x *Transactions) ended(err error, idle bool) error {
	if x.db.says(err, endedIdle) || idle && errors.Is(err, driver.ErrBadConn) {
		return errors.Join(ErrLeaseOver, err)
	}
	return err
}

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
