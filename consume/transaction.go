package consume

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/idempotency"
)

// Transactor is a store that can complete an event's record in the transaction of
// the event's handler. A sqlstore.Transactions is one.
type Transactor interface {
	idempotency.Store
	// Begin begins a transaction for the holder of a record. It is rolled back when
	// ctx ends, or when nothing is done with it for as long as the lease, where the
	// database can see to that. release is to be called after its end; it is nil with
	// an error.
	Begin(ctx context.Context, t idempotency.Token, lease time.Duration) (tx *sql.Tx, release func(), err error)
	// CompleteIn is Complete as a part of tx. After an error tx is to be rolled back.
	CompleteIn(ctx context.Context, tx *sql.Tx, t idempotency.Token, a idempotency.Response, retention time.Duration) error
}

type txKey struct{}

// Tx returns the transaction that a handler of [Options.Transaction] runs in, and
// nil elsewhere. What the handler writes through it is committed together with the
// end of the event, or not at all. The handler neither commits nor rolls it back.
func Tx(ctx context.Context) *sql.Tx {
	tx, _ := ctx.Value(txKey{}).(*sql.Tx)
	return tx
}

// commitTimeout bounds a commit, or a rollback: it goes on after ctx ends.
const commitTimeout = 10 * time.Second

// attemptTx is the transaction of one attempt.
type attemptTx struct {
	*sql.Tx
	stop    func() bool        // ends the dependence on the run's context; false: that has ended
	end     context.CancelFunc // ends the context that the transaction is under
	release func()
}

// open begins the transaction of the next attempt, where handlers have one. It
// ends with ctx, until it is to be committed.
func (r *run) open(ctx context.Context) error {
	if !r.c.Transaction {
		return nil
	}
	own, end := context.WithCancel(context.WithoutCancel(ctx))
	// A full pool must not keep the event forever.
	limited, cancel := context.WithTimeout(ctx, r.c.Lease)
	defer cancel()
	stop := context.AfterFunc(limited, end)
	tx, release, err := r.c.Store.(Transactor).Begin(own, r.ends(idempotency.Keep).Token, r.c.Lease)
	if !stop() && err == nil {
		_ = tx.Rollback()
		release()
		err = limited.Err()
	}
	if err != nil {
		end()
		return err
	}
	r.tx = &attemptTx{Tx: tx, stop: context.AfterFunc(ctx, end), end: end, release: release}
	return nil
}

// unopened lets an event come again whose transaction could not begin: no attempt
// was made.
func (r *run) unopened(ctx context.Context, err error) Decision {
	r.call.Release()
	r.last = false // a redrive is not over for that
	d := r.give(ctx, min(soon(), r.c.Lease), "store", err)
	d.Duplicate = true
	return d
}

// work calls the handler, in the attempt's transaction where it has one. What a
// handler did that failed or panicked is rolled back.
func (r *run) work(ctx context.Context) error {
	tx := r.tx
	if tx == nil {
		return r.handled(ctx)
	}
	r.tx = nil
	defer tx.release()
	defer tx.end()
	defer func() {
		tx.stop()
		defer time.AfterFunc(commitTimeout, tx.end).Stop()
		_ = tx.Rollback() // of what is not committed; a connection that cannot is closed
	}()
	if err := r.handled(context.WithValue(ctx, txKey{}, tx.Tx)); err != nil {
		if ctx.Err() == nil && undone(ctx, tx.Tx, err) {
			err = forbear.Retryable(err, forbear.Hint{})
		}
		return err
	}
	return r.commit(ctx, tx)
}

// undone reports whether a handler failed because the database ended its
// transaction, or is gone: not for what the handler did, and nothing of it is left.
func undone(ctx context.Context, tx *sql.Tx, err error) bool {
	if state := sqlState(err); state != "" {
		switch state[:2] {
		case "40", "08", "57": // rolled back, such as after a deadlock; the connection; an operator
			return true
		}
		return state == "55P03" || state == "25P03" // a lock, or the handler, took too long
	}
	if errors.Is(err, driver.ErrBadConn) {
		return true
	}
	// A transaction that failed says so by a code; without one its connection is gone.
	var one int
	err = tx.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	return err != nil && sqlState(err) == "" && !errors.Is(err, sql.ErrTxDone)
}

// sqlState returns the code of an error of SQL, which has five characters, or "".
func sqlState(err error) string {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok && len(e.SQLState()) == 5 {
		return e.SQLState()
	}
	return ""
}

// commit completes the event in its handler's transaction. When the outcome of
// the commit is unknown, the record decides: it is completed, or the next attempt is
// refused for as long as the commit may still happen.
func (r *run) commit(ctx context.Context, tx *attemptTx) error {
	if !tx.stop() {
		return fmt.Errorf("not committed: %w", context.Canceled)
	}
	defer time.AfterFunc(commitTimeout, tx.end).Stop()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	token := r.ends(idempotency.Keep).Token
	err := r.c.Store.(Transactor).CompleteIn(limited, tx.Tx, token, processed, r.c.Window)
	if err == nil {
		err = tx.Commit()
	}
	if err == nil {
		r.committed = true
		return nil
	}
	_ = tx.Rollback()
	var rec idempotency.Record
	unread := r.write(ctx, func(ctx context.Context) (err error) {
		rec, err = r.c.Store.Get(ctx, token.ID)
		return err
	})
	switch {
	case unread == nil && rec.State == idempotency.Completed:
		r.committed = true
		return nil
	case unread != nil || rec.Fence != token.Fence: // or another run holds it
		r.unsure = errors.Join(err, unread)
	}
	return forbear.Retryable(fmt.Errorf("commit: %w", err), forbear.Hint{})
}
