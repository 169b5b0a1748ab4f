package idempotency

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fill takes as many blocks for a body as fit, 1000 at most.
func (s *share) fill() (n int) {
	for range 1000 {
		if _, ok := s.take(block); !ok {
			break
		}
		n++
	}
	return n
}

// One principal takes four fifths of the room at most, another as much of the rest, and
// in a full room the oldest body of each goes on, so that none waits for all others.
func TestRoomIsFairByPrincipal(t *testing.T) {
	r := newRoom()
	r.left = 100 * block
	oldest, greedy := r.enter("greedy"), r.enter("greedy")
	second, third := r.enter("second"), r.enter("second")
	if n := greedy.fill(); n != 80 {
		t.Errorf("one principal took %d of 100 blocks, want 80", n)
	}
	if n := third.fill(); n != 16 {
		t.Errorf("then another took %d of 20 blocks, want 16", n)
	}
	for range 20 { // beyond the room, too
		if _, ok := oldest.take(block); !ok {
			t.Fatal("the oldest body of a principal waits")
		}
		if _, ok := second.take(block); !ok {
			t.Fatal("the oldest body of another principal waits")
		}
	}
	if _, ok := r.enter("second").take(block); ok {
		t.Error("a younger body goes on in a full room")
	}
	for i := 3; i <= roomTurns+1; i++ { // beside the two
		if _, ok := r.enter(string(rune('a' + i))).take(block); ok != (i <= roomTurns) {
			t.Errorf("principal %d goes on: %v", i, ok)
		}
	}
	for len(r.bodies) > 0 {
		r.bodies[0].leave()
	}
	if r.left != 100*block || len(r.held) != 0 {
		t.Errorf("%d bytes and %d holders are left", r.left, len(r.held))
	}
}

// A body that waits goes on when another has left, and otherwise gives up after a while
// or with its request.
func TestWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom()
		r.left = 10 * block
		first := r.enter("p")
		for range 10 {
			_, _ = first.take(block)
		}
		grow := func(ctx context.Context) (took time.Duration, err error) {
			began := time.Now()
			s := r.enter("p")
			defer s.leave()
			_, err = s.grow(ctx, block)
			return time.Since(began), err
		}
		if took, err := grow(t.Context()); took != roomWait || !errors.Is(err, errOverloaded) {
			t.Errorf("in a full room: %v after %v", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if took, err := grow(ctx); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("whose request ends: %v after %v", err, took)
		}
		time.AfterFunc(2*time.Second, first.leave)
		if took, err := grow(t.Context()); took != 2*time.Second || err != nil {
			t.Errorf("when another leaves: %v after %v", err, took)
		}
	})
}
