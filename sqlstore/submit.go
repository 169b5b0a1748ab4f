package sqlstore

import (
	"context"
	"time"
)

// op is one write. run may be called again, after a rollback: it keeps nothing
// from one call to the next.
type op struct {
	run    func(*tx) error
	accept *acceptance // instead of run: those of a group are run as one
	// last is run after the others of the group: it waits for no lock, and may
	// take some that others wait for.
	last func(*tx) error
	keys keyLocks // of the keys whose order the write decides about
	// alone says that the write has a transaction of its own on PostgreSQL: it
	// takes locks that the order of the others does not foresee.
	alone bool
	// volatile says that a power cut may take the write back, for one that
	// means nothing after a restart of the machine.
	volatile bool
	// limit bounds the transaction on PostgreSQL; default groupTimeout.
	limit time.Duration
	done  chan error
}

// write runs f in a transaction that may be shared with other writes. It
// returns when the transaction is on disk, or when ctx ends: then the write may
// still happen.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	return s.submit(ctx, &op{run: f, alone: true})
}

func (s *Store) submit(ctx context.Context, o *op) error {
	o.done = make(chan error, 1)
	if err := s.enqueue(ctx, o); err != nil {
		return err
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// do is write for an f with a result. The result is handed over only when the
// caller is still there, which is why it needs the type parameter: a captured
// variable would be written behind the back of a caller that has left.
func do[T any](ctx context.Context, s *Store, f func(*tx) (T, error)) (T, error) {
	return doAs(ctx, s, op{alone: true}, f)
}

// doAs is do, for a write that is not like all others: as says how.
func doAs[T any](ctx context.Context, s *Store, as op, f func(*tx) (T, error)) (T, error) {
	box := new(T)
	as.run = func(t *tx) (err error) {
		*box, err = f(t)
		return err
	}
	return submitted(ctx, s, &as, box)
}

// doLast is do, for what comes last in its group.
func doLast[T any](ctx context.Context, s *Store, f func(*tx) (T, error)) (T, error) {
	box := new(T)
	return submitted(ctx, s, &op{last: func(t *tx) (err error) {
		*box, err = f(t)
		return err
	}}, box)
}

func submitted[T any](ctx context.Context, s *Store, o *op, box *T) (result T, err error) {
	if err := s.submit(ctx, o); err != nil {
		return result, err
	}
	return *box, nil
}

func (s *Store) enqueue(ctx context.Context, o *op) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	ops := s.ops
	if o.keys != 0 {
		ops = s.ordered
	}
	select {
	case ops <- o:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
