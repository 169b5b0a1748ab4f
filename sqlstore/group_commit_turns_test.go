package sqlstore

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A group leaves at once when none is under way, or beside one that is no larger;
// else it waits until it has grown or the other has ended.
func TestTurns(t *testing.T) {
	var turns turns
	leave := func(n int, want bool) <-chan struct{} {
		t.Helper()
		ok, ended := turns.leave(n)
		if ok != want || ok == (ended != nil) {
			t.Errorf("a group of %d may leave: %v, want %v", n, ok, want)
		}
		return ended
	}
	leave(1, true)
	leave(1, true) // one by one, none waits
	turns.end()
	turns.end()
	leave(50, true)
	ended := leave(3, false)
	if again := leave(49, false); again != ended {
		t.Error("two waits for one end")
	}
	leave(50, true)
	turns.end()
	select {
	case <-ended:
	default:
		t.Error("the end of a group was not noted")
	}
	turns.end()
	leave(1, true)
}

// Beside a large group, writes gather until it ends.
func TestGroupsGatherBesideALargeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := make(chan *op, 8)
		turns := new(turns)
		turns.leave(4)
		w := &writer{db: &DB{d: postgres{}}, ops: ops, turns: turns}
		left := make(chan int)
		go func() { left <- len(w.await([]*op{{}})) }()
		ops <- &op{}
		synctest.Wait()
		select {
		case n := <-left:
			t.Errorf("a group of %d left beside one of 4", n)
		default:
		}
		ops <- &op{}
		close(ops)
		synctest.Wait()
		turns.end()
		if n := <-left; n != 3 {
			t.Errorf("a group of %d left, want all 3", n)
		}
	})
}

// Others hear of messages that this process has not claimed within a while, and of
// whatever else is new.
func TestOthersHearOfWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		n := &notifier{send: func(news bool, _ []string) {
			if news {
				sent.Add(1)
			}
		}}
		rows := []encoded{{Message: webhook.Message{Endpoints: []string{"a", "b"}}}}
		for _, tt := range []struct {
			name string
			do   func(accepted time.Time)
			want int
		}{
			{"nothing claimed", func(time.Time) {}, 1},
			{"all claimed", func(at time.Time) { n.drained([]string{"a", "b", "c"}, at.Add(time.Microsecond)) }, 0},
			{"one claimed", func(at time.Time) { n.drained([]string{"a"}, at.Add(time.Microsecond)) }, 1},
			{"by a claim of before", func(at time.Time) { n.drained([]string{"a", "b"}, at) }, 1},
			{"accepted again", func(at time.Time) {
				time.Sleep(time.Millisecond)
				n.drained([]string{"a", "b"}, time.Now())
				n.accepted(rows)
			}, 1},
			{"and other news", func(at time.Time) { n.drained([]string{"a", "b"}, at.Add(1)); n.wake() }, 1},
		} {
			sent.Store(0)
			n.accepted(slices.Clone(rows))
			tt.do(time.Now())
			time.Sleep(2 * notifyEvery)
			if got := int(sent.Load()); got != tt.want {
				t.Errorf("%s: %d notifications, want %d", tt.name, got, tt.want)
			}
		}
	})
}
