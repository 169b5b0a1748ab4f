package idempotency

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// largeRoom bounds what the large bodies of a handler take together while
	// they come in, in bytes.
	largeRoom = 64 << 20
	// largeTurns is how many of them may go beyond it, each up to the handler's
	// limit: some always come to their end, and make room for others.
	largeTurns = 32
	// largeBodyTime bounds the reading of a large body, and the wait for a turn.
	largeBodyTime = 10 * time.Second
)

// room is the memory for bodies that are being read. A body takes of it what has
// arrived, and not what it may come to: callers who send slowly take little, and
// keep no other caller waiting. Only when it is full do bodies wait for a turn.
// Without the bound a thousand requests that are too large, and do not say so,
// would take a thousand times the limit before they are refused.
//
// It is safe for concurrent use. Make it with [newRoom].
type room struct {
	left  atomic.Int64
	turns chan struct{}
}

// newRoom returns an empty room.
func newRoom() *room {
	r := &room{turns: make(chan struct{}, largeTurns)}
	r.left.Store(largeRoom)
	return r
}

// take takes n bytes, if they are there.
func (r *room) take(n int64) bool {
	if r.left.Add(-n) >= 0 {
		return true
	}
	r.left.Add(n)
	return false
}

// share is what one body has of a room. It is used by one goroutine.
type share struct {
	room  *room
	bytes int64
	turn  bool
}

// grow makes room for n bytes more, and reports whether it had to wait for a
// turn. A body that has one waits no more.
func (s *share) grow(ctx context.Context, n int64) (waited bool, err error) {
	if s.turn {
		return false, nil
	}
	if s.room.take(n) {
		s.bytes += n
		return false, nil
	}
	timeout := time.NewTimer(largeBodyTime)
	defer timeout.Stop()
	select {
	case s.room.turns <- struct{}{}:
		s.turn = true
		return true, nil
	case <-timeout.C:
		return true, errOverloaded
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// giveBack ends the share: the body has been read, or given up.
func (s *share) giveBack() {
	s.room.left.Add(s.bytes)
	if s.turn {
		<-s.room.turns
	}
}
