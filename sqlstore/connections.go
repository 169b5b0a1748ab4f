package sqlstore

import (
	"context"
	"database/sql"
	"sync"
)

// slots bounds how many connections of a pool are in use at once, where the pool
// itself has no bound: a burst of duplicates would otherwise take all that the
// server has, and the next ones, of whatever program, would be refused. Who finds
// none free waits, as in a pool with a bound.
//
// The pool is left as it is. A bound of its own would also count what handlers
// take beside their transactions, and handlers that wait for each other's
// connections wait for ever.
//
// It is safe for concurrent use.
type slots struct {
	d    dialect
	pool *sql.DB
	part int // of the server's connections: one in so many

	mu    sync.Mutex
	known bool
	free  chan struct{} // nil: no bound is needed
}

// The parts of a server's connections that one process takes through a pool
// without a bound: four processes fit, with some left for others.
const (
	handlerPart = 6  // transactions, each for as long as its handler runs
	storePart   = 12 // statements of the store's own
)

// take waits for a slot. release gives it back.
func (s *slots) take(ctx context.Context) (release func(), err error) {
	free, err := s.open(ctx)
	if err != nil || free == nil {
		return func() {}, err
	}
	select {
	case free <- struct{}{}:
		return func() { <-free }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open asks the server how many connections it has, once.
func (s *slots) open(ctx context.Context) (chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.free, nil
	}
	if s.pool.Stats().MaxOpenConnections == 0 {
		n, err := s.d.connections(ctx, s.pool)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			s.free = make(chan struct{}, max(n/s.part, 1))
		}
	}
	s.known = true
	return s.free, nil
}
