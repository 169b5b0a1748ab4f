package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// Each opening that no recovery came between doubles the wait for the next
// probe, up to ten minutes; the outage is reported once.
func TestPacingDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outages := 0
		p := &pacing{opened: func() { outages++ }, closed: func() {}}
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
		if outages != 1 {
			t.Errorf("%d reports of one outage", outages)
		}
		p.breakerMoved(breaker.Transition{From: breaker.HalfOpen, To: breaker.Closed})
		p.breakerMoved(open)
		if got := time.Until(p.probeAt()); got != 5*time.Second || outages != 2 {
			t.Errorf("after a recovery: %v, %d reports", got, outages)
		}
		// Held open by hand: the breaker does not move, and no lane spins.
		time.Sleep(time.Hour)
		if off := p.refused(); off < 5*time.Second {
			t.Errorf("behind a breaker that is held open: again in %v", off)
		}
	})
}
