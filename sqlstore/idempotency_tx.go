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
// idempotency.Transactor. Make it with [Store.Transactions]. It is safe for
// concurrent use.
type Transactions struct {
	*Idempotency
	db *sql.DB

	mu      sync.Mutex
	running map[idempotency.ID]bool
}

// Transactions returns the idempotency records together with the pool on which
// handlers run their transactions. It is a pool to the same database: on
// PostgreSQL the application's own; on SQLite one opened with the writing
// source name of [SQLiteNames], and not the one that the store writes with. On
// SQLite all transactions of a file wait for each other: short handlers only.
func (s *Store) Transactions(db *sql.DB) *Transactions {
	return &Transactions{Idempotency: s.Idempotency(), db: db, running: map[idempotency.ID]bool{}}
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

func (x *Transactions) end(id idempotency.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.running, id)
}

// Transact implements idempotency.Transactor. Within the process a duplicate is
// turned away before it takes a connection; between processes PostgreSQL's
// advisory lock does it without a wait, and SQLite's one writer with one.
func (x *Transactions) Transact(ctx context.Context, c idempotency.Claim, run func(context.Context, *sql.Tx, idempotency.Record) (*idempotency.Answer, error)) (v idempotency.Verdict, err error) {
	busy := idempotency.Verdict{Outcome: idempotency.InProgress, Record: idempotency.Record{ID: c.ID}, LeaseLeft: time.Second}
	if !x.begin(c.ID) {
		return busy, nil
	}
	defer x.end(c.ID)
	conn, err := x.db.Conn(ctx)
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
	t := &tx{ctx: ctx, s: x.s, d: x.s.d, conn: conn} // the connection that txn is on
	if x.s.d.postgres {
		var free bool
		if _, err := t.row([]any{&free}, `SELECT pg_try_advisory_xact_lock(hashtextextended(?::text, 11))`, c.ID.Scope+"\n"+c.ID.Key); err != nil {
			return v, err
		}
		if !free {
			return busy, nil
		}
	}
	if v, err = x.s.claimKey(t, c); err != nil {
		return v, err
	}
	if v.Outcome == idempotency.Acquired {
		answer, err := run(ctx, txn, v.Record)
		if err != nil || answer == nil {
			return v, err
		}
		header, body, err := x.s.sealAnswer(*answer)
		if err != nil {
			return v, err
		}
		k := idempotency.Token{ID: c.ID, Owner: c.Owner, Fence: v.Record.Fence}
		if err := t.updateHeld(k, setCompleted, answer.Status, header, body, answer.Tombstone, after(0), after(c.Retention)); err != nil {
			return v, err
		}
	}
	committed = true
	return v, txn.Commit()
}
