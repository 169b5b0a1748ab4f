package dispatch

import (
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/store"
)

// A slot is stored with all that it has so far, again when the store did not take
// it, and as it ended when the next has begun.
func TestTalliesAreOfWholeSlots(t *testing.T) {
	var s ledger
	now := time.Unix(0, 0)
	stored := func() map[int64]int64 {
		_, of := s.counted(now)
		s.countAgain(of)
		list, _ := s.counted(now)
		counts := map[int64]int64{}
		for _, l := range list {
			counts[l.Slot] += l.Responses[2]
		}
		return counts
	}
	s.count("a", &deadletter.Attempt{At: now, Status: 200, Took: time.Second})
	if got := stored(); len(got) != 1 || got[0] != 1 {
		t.Errorf("got %v", got)
	}
	s.count("a", &deadletter.Attempt{At: now, Status: 200, Took: time.Second})
	now = now.Add(store.Slot)
	s.count("a", &deadletter.Attempt{At: now, Status: 200, Took: time.Second})
	if got := stored(); len(got) != 2 || got[0] != 2 || got[1] != 1 {
		t.Errorf("got %v", got)
	}
	now = now.Add(store.Slot)
	if got := stored(); len(got) != 0 || len(s.open) != 0 {
		t.Errorf("got %v, and %d are kept", got, len(s.open))
	}
}
