package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// Transactions is an [Idempotency] with the transaction mode: it implements
// idempotency.Transactor. Make it with [DB.Transactions]. It is safe for
// concurrent use.
type Transactions struct {
	*Idempotency
	pool *sql.DB // the application's

	mu      sync.Mutex
	running map[idempotency.ID]bool // in this process
}

// Transactions returns the idempotency records together with the pool on which
// handlers run their transactions. It is a pool to the same database: on
// PostgreSQL the application's own; on SQLite one opened with the writing
// source name of [SQLiteNames], and not the one that the store writes with. On
// SQLite all transactions of a file wait for each other: short handlers only.
func (db *DB) Transactions(pool *sql.DB) *Transactions {
	return &Transactions{Idempotency: db.Idempotency(), pool: pool, running: map[idempotency.ID]bool{}}
}

// begin takes note of a run, unless one is there.
func (x *Transactions) begin(id idempotency.ID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.running[id] {
		return false
	}
	x.running[id] = true
	return true
}

// end lets another run begin.
func (x *Transactions) end(id idempotency.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.running, id)
}

// Transact implements idempotency.Transactor. Within the process a duplicate is
// turned away before it takes a connection; between processes PostgreSQL's
// advisory lock does it without a wait, and SQLite's one writer with one.
func (x *Transactions) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, *sql.Tx, idempotency.Record) (*idempotency.Response, error)) (v idempotency.Verdict, err error) {
	// A duplicate is to come back in a second: no lease says how long a
	// transaction takes.
	busy := idempotency.Verdict{Outcome: idempotency.InProgress, Record: idempotency.Record{ID: c.ID}, LeaseLeft: time.Second}
	if !x.begin(c.ID) {
		return busy, nil
	}
	// Registered before a connection is taken: duplicates that waited in the pool
	// could use it up.
	defer x.end(c.ID)
	conn, err := x.pool.Conn(ctx)
	if err != nil {
		return v, err
	}
	defer func() { _ = conn.Close() }()
	txn, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return v, err
	}
	committed := false
	defer func() {
		if !committed { // a panic of the handler comes this way too
			if rollback := txn.Rollback(); !errors.Is(rollback, sql.ErrTxDone) {
				err = errors.Join(err, rollback)
			}
		}
	}()
	t := &tx{ctx: ctx, db: x.db, conn: conn} // the connection that txn is on
	if free, err := x.db.d.tryLockRecord(t, c.ID); err != nil {
		return v, err
	} else if !free {
		return busy, nil
	}
	if v, err = t.claimRecord(c); err != nil {
		return v, err
	}
	// Anything else, a replay above all, has only read: the commit ends it.
	if v.Outcome == idempotency.Acquired {
		response, err := run(ctx, txn, v.Record)
		if err != nil || response == nil {
			return v, err
		}
		header, body, err := x.db.sealResponse(*response)
		if err != nil {
			return v, err
		}
		// In the transaction of the handler's writes: all of it is there, or nothing.
		k := idempotency.Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}
		if err := t.updateHeld(k, setCompleted, response.Status, header, body, response.Tombstone, after(0), after(c.Retention)); err != nil {
			return v, err
		}
	}
	committed = true
	return v, txn.Commit()
}
