package idempotency

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// cuttable is a response writer whose reading can be cut short, as a server's can.
type cuttable struct{ *httptest.ResponseRecorder }

func (cuttable) SetReadDeadline(time.Time) error { return nil }

// holding returns a body of the principal that holds n blocks of the room.
func holding(t *testing.T, r *room, w http.ResponseWriter, principal string, n int) *share {
	s := r.enter(principal, newBodyReader(w, http.NoBody, time.Second, time.Minute))
	for range n {
		if waited, err := s.grow(t.Context(), block); err != nil || waited {
			t.Fatalf("%s: waited %v, %v", principal, waited, err)
		}
	}
	return s
}

// small returns a room of so many blocks.
func small(blocks int64) *room {
	r := newRoom()
	r.left, r.turns = blocks*block, 0
	return r
}

// A full room takes from the principal that holds the most, and only as long as it
// does: never from one that holds its share, nor where reading cannot be cut short.
func TestRoomRefusesTheGreatestHolderFirst(t *testing.T) {
	for _, tc := range []struct {
		name          string
		w             http.ResponseWriter
		greedy, other []int // blocks of each body
		want          int   // which of the greedy one's bodies is refused; -1: none
	}{
		{"the one that stood still the longest", cuttable{}, []int{2, 2, 2}, []int{1}, 0},
		{"one that holds something", cuttable{}, []int{0, 2, 2}, []int{1}, 1},
		{"a single body is left", cuttable{}, []int{4}, []int{0}, -1},
		{"equals", cuttable{}, []int{2, 2}, []int{2, 2}, -1},
		{"nearly equal", cuttable{}, []int{2, 2}, []int{2}, -1},
		{"a server without deadlines", httptest.NewRecorder(), []int{2, 2, 2}, []int{1}, -1},
	} {
		synctest.Test(t, func(t *testing.T) {
			total := 0
			for _, n := range append(tc.greedy, tc.other...) {
				total += n
			}
			r := small(int64(total))
			var greedy, other []*share
			for _, n := range tc.greedy {
				greedy = append(greedy, holding(t, r, tc.w, "greedy", n))
				time.Sleep(time.Millisecond) // each has moved later than those before it
			}
			for _, n := range tc.other {
				other = append(other, holding(t, r, tc.w, "other", n))
			}
			done := make(chan error, 1)
			go func() { _, err := other[0].grow(t.Context(), block); done <- err }()
			synctest.Wait()
			for i, s := range greedy {
				if got := s.in.refused.Load(); got != (i == tc.want) {
					t.Errorf("%s: body %d refused %v", tc.name, i, got)
				}
			}
			want := errOverloaded
			if tc.want >= 0 {
				want = nil
				if !greedy[tc.want].giveBack() {
					t.Errorf("%s: a refused body ends as if it were whole", tc.name)
				}
				greedy[tc.want] = nil
			}
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", tc.name, err, want)
			}
			for _, s := range append(greedy, other...) {
				if s != nil {
					s.giveBack()
				}
			}
			if r.left != int64(total)*block || r.turns != 0 || len(r.holders) != 0 || len(r.waiting) != 0 {
				t.Errorf("%s: %d bytes, %d turns, %d holders, %d waiting are left", tc.name, r.left, r.turns, len(r.holders), len(r.waiting))
			}
		})
	}
}

// What becomes free goes to the principal that holds the least, not to the one that
// asked first; a body that waits no more gets nothing.
func TestRoomGoesToTheSmallestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := small(4)
		big, mid := holding(t, r, cuttable{}, "big", 2), holding(t, r, cuttable{}, "mid", 1)
		ending := holding(t, r, cuttable{}, "ending", 1)
		order := make(chan string, 4)
		wait := func(ctx context.Context, name string, s *share) {
			go func() {
				if _, err := s.grow(ctx, block); err == nil {
					order <- name
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait(t.Context(), "big", big)
		wait(t.Context(), "mid", mid)
		wait(ctx, "gone", r.enter("gone", newBodyReader(cuttable{}, http.NoBody, time.Second, time.Minute)))
		cancel()
		synctest.Wait()
		ending.giveBack() // one block
		synctest.Wait()
		if len(order) != 1 || <-order != "mid" {
			t.Error("the block went to another than the one that holds the least")
		}
		mid.giveBack() // two
		if got := <-order; got != "big" {
			t.Errorf("then came %q, want big", got)
		}
		big.giveBack()
	})
}
