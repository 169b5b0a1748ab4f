package idempotency

import (
	"context"
	"slices"
	"sync"
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
// It is fair by principal. One alone may fill it; when another comes then, the
// principal that holds the most loses the body that has stood still the longest.
// What becomes free goes to the one that holds the least.
//
// It is safe for concurrent use. Make it with [newRoom].
type room struct {
	mu      sync.Mutex
	left    int64
	turns   int
	holders map[string]*holder // by principal: those with a body under way
	waiting []*share           // in the order in which they came
}

// holder is what a principal's bodies hold together. The room's mutex guards it.
type holder struct {
	bytes  int64
	bodies map[*share]struct{}
}

// newRoom returns an empty room.
func newRoom() *room {
	return &room{left: largeRoom, turns: largeTurns, holders: map[string]*holder{}}
}

// share is what one body has of a room. One goroutine uses it; what the mutex of
// the room guards, others may look at. Its end is giveBack.
type share struct {
	room      *room
	principal string
	in        *bodyReader

	// Guarded by the room's mutex.
	bytes, beyond int64 // held of the room, and by its turn
	turn          bool
	want          int64      // what it waits for
	ready         chan error // the end of its wait; of one element
	pinned        bool       // its reading cannot be cut short
}

// enter begins the share of a principal's body that in reads.
func (r *room) enter(principal string, in *bodyReader) *share {
	s := &share{room: r, principal: principal, in: in, ready: make(chan error, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.holders[principal]
	if h == nil {
		h = &holder{bodies: map[*share]struct{}{}}
		r.holders[principal] = h
	}
	h.bodies[s] = struct{}{}
	return s
}

// holder returns what the principal of the share holds. The mutex is held.
func (s *share) holder() *holder { return s.room.holders[s.principal] }

// grow makes room for n bytes more, and reports whether it had to wait for a
// turn. A body that has one waits no more.
func (s *share) grow(ctx context.Context, n int64) (waited bool, err error) {
	r := s.room
	r.mu.Lock()
	if s.in.refused.Load() {
		r.mu.Unlock()
		return false, errOverloaded
	}
	if s.take(n) {
		r.mu.Unlock()
		return false, nil
	}
	s.want = n
	r.waiting = append(r.waiting, s)
	r.evict(s)
	r.mu.Unlock()

	timeout := time.NewTimer(largeBodyTime)
	defer timeout.Stop()
	select {
	case err := <-s.ready:
		return true, err
	case <-timeout.C:
		err = errOverloaded
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leave(s) {
		return true, <-s.ready // it came in the same moment
	}
	return true, err
}

// take takes n bytes or a turn, if they are there. The mutex is held.
func (s *share) take(n int64) bool {
	switch {
	case s.turn:
		s.beyond += n
	case s.room.left >= n:
		s.room.left -= n
		s.bytes += n
	case s.room.turns > 0:
		s.room.turns--
		s.turn, s.beyond = true, n
	default:
		return false
	}
	s.holder().bytes += n
	return true
}

// leave ends the wait of a share, and reports whether it was waiting. The mutex
// is held.
func (r *room) leave(s *share) bool {
	i := slices.Index(r.waiting, s)
	if i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
	}
	return i >= 0
}

// evict refuses a body of the principal that holds the most, for the sake of s.
// That principal still holds at least as much as that of s then, so that no two
// take from each other in turn. The mutex is held.
func (r *room) evict(s *share) {
	var most *holder
	for _, h := range r.holders {
		if most == nil || h.bytes > most.bytes {
			most = h
		}
	}
	for {
		var victim *share
		for b := range most.bodies {
			if b.pinned || b.in.refused.Load() || b.bytes == 0 && !b.turn || most.bytes-b.bytes-b.beyond < s.holder().bytes+s.want {
				continue
			}
			if victim == nil || b.in.moved.Load() < victim.in.moved.Load() {
				victim = b
			}
		}
		if victim == nil || victim.refuse() {
			return
		}
		victim.pinned = true
	}
}

// refuse makes a body end with errOverloaded, and reports whether it could. What
// it holds comes back when its reading has ended. The mutex is held.
func (s *share) refuse() bool {
	if s.room.leave(s) {
		s.in.refused.Store(true)
		s.ready <- errOverloaded
		return true
	}
	return s.in.refuse()
}

// giveBack ends the share: the body has been read, or given up. It reports
// whether the body was refused meanwhile: its connection is of no use then.
func (s *share) giveBack() (refused bool) {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	h := s.holder()
	h.bytes -= s.bytes + s.beyond
	if delete(h.bodies, s); len(h.bodies) == 0 {
		delete(r.holders, s.principal)
	}
	r.left += s.bytes
	if s.turn {
		r.turns++
	}
	r.admit()
	return s.in.refused.Load()
}

// admit lets those go on that there is room for: first those whose principals
// hold the least. The mutex is held.
func (r *room) admit() {
	for len(r.waiting) > 0 {
		next := slices.MinFunc(r.waiting, func(a, b *share) int { return int(a.holder().bytes - b.holder().bytes) })
		if !next.take(next.want) {
			return
		}
		r.leave(next)
		next.ready <- nil
	}
}
