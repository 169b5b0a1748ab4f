package idempotency

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

const (
	// roomSize bounds what the large bodies of a handler take together while they
	// come in, in bytes.
	roomSize = 96 << 20
	// roomShare is how many times what is left a principal may hold: one alone fills
	// four fifths of the room, and there is always some for another.
	roomShare = 4
	// roomTurns is how many principals may go on with one body each in a full room.
	// Without them the bodies could all wait for each other.
	roomTurns = 32
	// roomWait bounds the wait for room.
	roomWait = 10 * time.Second
)

// room is the memory for bodies that are being read. A body takes what has arrived, and
// not what it may grow to: slow senders take little, and do not delay other callers.
// Without the bound a thousand requests that are too large, and do not say so, would
// take a thousand times the limit before they are refused.
//
// It is fair by principal: the more of the room is taken, the less one may hold.
//
// It is safe for concurrent use. Make it with [newRoom].
type room struct {
	mu     sync.Mutex
	left   int64
	held   map[string]int64 // by principal
	bodies []*share         // in the order in which they came
	freed  chan struct{}    // closed when a body has left
}

// newRoom returns an empty room.
func newRoom() *room {
	return &room{left: roomSize, held: map[string]int64{}, freed: make(chan struct{})}
}

// share is what one body takes of a room. End it with leave.
type share struct {
	room      *room
	principal string
	bytes     int64
}

// enter begins the share of a principal's body.
func (r *room) enter(principal string) *share {
	s := &share{room: r, principal: principal}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, s)
	return s
}

// grow takes n bytes more, and reports whether it had to wait for them.
func (s *share) grow(ctx context.Context, n int64) (waited bool, err error) {
	deadline := time.Now().Add(roomWait)
	for ; ; waited = true {
		freed, ok := s.take(n)
		left := time.Until(deadline)
		switch {
		case ok:
			return waited, nil
		case ctx.Err() != nil:
			return waited, ctx.Err()
		case left <= 0:
			return waited, errOverloaded
		}
		wait.Woken(ctx, left, freed)
	}
}

// take takes n bytes if they fit. Otherwise freed is closed when that may have changed.
func (s *share) take(n int64) (freed <-chan struct{}, ok bool) {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.fits(s, n) {
		return r.freed, false
	}
	r.left -= n
	r.held[s.principal] += n
	s.bytes += n
	return nil, true
}

// fits reports whether s may take n bytes: its principal holds little compared with what
// is left, or s has a turn. The mutex is held.
func (r *room) fits(s *share, n int64) bool {
	return r.held[s.principal]+n <= roomShare*(r.left-n) || r.turn(s)
}

// turn reports whether s is the oldest body of its principal, and that is one of the
// first. The mutex is held.
func (r *room) turn(s *share) bool {
	older := map[string]bool{}
	for _, b := range r.bodies {
		if b.principal == s.principal {
			return b == s
		}
		if older[b.principal] = true; len(older) >= roomTurns {
			return false
		}
	}
	return false
}

// leave ends the share: the body has been read, or given up.
func (s *share) leave() {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += s.bytes
	if r.held[s.principal] -= s.bytes; r.held[s.principal] == 0 {
		delete(r.held, s.principal)
	}
	r.bodies = slices.DeleteFunc(r.bodies, func(b *share) bool { return b == s })
	close(r.freed)
	r.freed = make(chan struct{})
}
