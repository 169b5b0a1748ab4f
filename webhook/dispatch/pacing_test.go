package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// Each opening that no recovery came between doubles the wait for the next
// probe, up to ten minutes; the outage is told once.
func TestPacingDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		p := &pacing{opened: func() { told++ }}
		open := breaker.Transition{From: breaker.HalfOpen, To: breaker.Open, OpenFor: 5 * time.Second}
		want := 5 * time.Second
		for range 10 {
			p.breakerMoved(open)
			if got := time.Until(p.probeAt()); got != want {
				t.Fatalf("the next probe comes in %v, want %v", got, want)
			}
			if off := p.refused(); off < want || off > want+want/4 {
				t.Fatalf("a refused delivery comes in %v, want %v and at most a quarter more", off, want)
			}
			want = min(2*want, slowest)
		}
		if told != 1 {
			t.Errorf("told %d times of one outage", told)
		}
		p.breakerMoved(breaker.Transition{From: breaker.HalfOpen, To: breaker.Closed})
		p.breakerMoved(open)
		if got := time.Until(p.probeAt()); got != 5*time.Second || told != 2 {
			t.Errorf("after a recovery: %v, told %d times", got, told)
		}
		// Held open by hand: the breaker does not move, and nobody spins.
		time.Sleep(time.Hour)
		if off := p.refused(); off < 5*time.Second {
			t.Errorf("behind a breaker that is held open: again in %v", off)
		}
	})
}
