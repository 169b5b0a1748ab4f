package sqlstore

import (
	"context"
	"time"
)

// op is one write on its way to a [writer].
//
// A caller waits for it under a context of its own, and the transaction runs
// under none of the callers': a member that is canceled would otherwise roll
// back what was about to be acknowledged to the others. So a write whose caller
// has left may still happen, and a result goes to a place that the caller reads
// only after the transaction has ended.
//
// run may be called again, after a rollback: it keeps nothing from one call to
// the next.
type op struct {
	run    func(*tx) error
	accept *acceptance // instead of run: those of a group are run as one
	keys   keyLocks    // of the keys whose order the write decides about
	// apart says that each statement of the write may be a transaction of its own on
	// PostgreSQL: it is done with the first one, and what follows only reads.
	apart bool
	// volatile says that the write means nothing after a restart of the machine
	// that made it, so that a power cut may take it back when the database is
	// on that machine.
	volatile bool
	// limit bounds the transaction on PostgreSQL; default groupTimeout.
	limit time.Duration
	done  chan error
}

// write runs f in a transaction that may be shared with other writes. It
// returns when the transaction is on disk, or when ctx ends: then the write may
// still happen.
func (db *DB) write(ctx context.Context, f func(*tx) error) error {
	return db.submit(ctx, &op{run: f})
}

// submit hands o to a writer and waits for the end of its transaction.
func (db *DB) submit(ctx context.Context, o *op) error {
	o.done = make(chan error, 1) // the writer never waits for a caller
	if err := db.enqueue(ctx, o); err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enqueue puts o behind the other writes of its kind, unless the database is
// closed: after that no writer takes anything.
func (db *DB) enqueue(ctx context.Context, o *op) error {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.closed {
		return ErrClosed
	}
	ops := db.ops
	switch {
	case o.keys != 0:
		ops = db.ordered
	case o.accept != nil:
		ops = db.accepts
	}
	// A full queue makes callers wait: the database is the slower side then.
	select {
	case ops <- o:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// do is write for an f with a result. The result is handed over only when the
// caller is still there, which is why it needs the type parameter: a captured
// variable would be written behind the back of a caller that has left.
func do[T any](ctx context.Context, db *DB, f func(*tx) (T, error)) (T, error) {
	return doAs(ctx, db, op{}, f)
}

// doAs is do, for a write that is not like all others: as says how.
func doAs[T any](ctx context.Context, db *DB, as op, f func(*tx) (T, error)) (T, error) {
	return boxed(f, func(run func(*tx) error) error {
		as.run = run
		return db.submit(ctx, &as)
	})
}

// boxed calls do with an f that has no result, and returns the result when do has not
// failed.
func boxed[T any](f func(*tx) (T, error), do func(run func(*tx) error) error) (result T, err error) {
	// On the heap, and f's until do has succeeded, and permanently when the caller leaves.
	box := new(T)
	err = do(func(t *tx) (err error) {
		*box, err = f(t)
		return err
	})
	if err != nil {
		return result, err
	}
	return *box, nil
}
