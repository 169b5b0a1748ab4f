package dispatch

import (
	"math/rand/v2"
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
		p := &pacing{failed: lifeless, opened: func(first bool, _ int, _ time.Time) {
			if first {
				outages++
			}
		}, closed: func() {}}
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

// An endpoint that takes two of five messages is sent some every five seconds, though
// its breaker hardly ever closes; one that is down is asked every ten minutes; and
// either is reported once.
func TestPacingOfAPartialOutage(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes float64
		most  time.Duration // on average between openings
		least time.Duration
	}{
		{"two of five", 0.4, 6 * time.Second, 0},
		{"one of ten", 0.1, 5 * time.Minute, 10 * time.Second},
		{"none", 0, slowest, 9 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			outages := 0
			p := &pacing{opened: func(first bool, _ int, _ time.Time) {
				if first {
					outages++
				}
			}, closed: func() {}}
			rng := rand.New(rand.NewPCG(1, 2))
			const openings = 2000
			begun := time.Now()
			for range openings {
				p.breakerMoved(breaker.Transition{From: breaker.HalfOpen, To: breaker.Open, OpenFor: 5 * time.Second})
				time.Sleep(time.Until(p.probeAt()))
				probes := 1
				if p.alive() {
					probes = 5
				}
				for range probes {
					p.ended(rng.Float64() < c.takes)
				}
			}
			mean := time.Since(begun) / openings
			if mean > c.most || mean < c.least || outages != 1 {
				t.Errorf("%s: asked every %v on average, want %v to %v; reported %d times", c.name, mean, c.least, c.most, outages)
			}
		})
	}
}
