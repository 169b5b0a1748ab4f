package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook"
)

// Each opening that no recovery came between doubles the wait for the next
// probe, up to ten minutes; the outage is reported once.
func TestDownDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, status(200), webhook.Endpoint{})
		p := r.to
		p.failures = lifeless
		open := breaker.Transition{From: breaker.HalfOpen, To: breaker.Open, OpenFor: 5 * time.Second}
		want := 5 * time.Second
		for range 10 {
			p.breakerMoved(open)
			if got := time.Until(p.holds[down].until); got != want {
				t.Fatalf("the next probe comes in %v, want %v", got, want)
			}
			if off := p.behindProbe(); off < want || off > want+want/4 {
				t.Fatalf("a refused delivery comes in %v, want %v and at most a quarter more", off, want)
			}
			want = min(2*want, slowest)
		}
		if got := r.alerts(); !slices.Equal(got, []string{"endpoint_slowed"}) {
			t.Errorf("alerts of one outage are %v", got)
		}
		p.breakerMoved(breaker.Transition{From: breaker.HalfOpen, To: breaker.Closed})
		p.breakerMoved(open)
		if got := time.Until(p.holds[down].until); got != 5*time.Second {
			t.Errorf("after a recovery: %v", got)
		}
		// Held open by hand: the breaker does not move, and no lane spins.
		time.Sleep(time.Hour)
		if off := p.behindProbe(); off < 5*time.Second {
			t.Errorf("behind a breaker that is held open: again in %v", off)
		}
	})
}

// An endpoint that takes two of five messages is sent some every five seconds, though
// its breaker hardly ever closes; one that is down is asked every ten minutes; and
// either is one alert.
func TestDownOfAPartialOutage(t *testing.T) {
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
			r := newRig(t, status(200), webhook.Endpoint{})
			p := r.to
			rng := rand.New(rand.NewPCG(1, 2))
			const openings = 2000
			begun := time.Now()
			last := false // how the probe did that moved the breaker, which is learned of later
			learn := func(good bool) {
				if p.failures++; good {
					p.failures = 0
				}
			}
			for range openings {
				p.breakerMoved(breaker.Transition{From: breaker.HalfOpen, To: breaker.Open, OpenFor: 5 * time.Second})
				learn(last)
				time.Sleep(time.Until(p.holds[down].until))
				if p.failures < lifeless {
					for range 4 {
						learn(rng.Float64() < c.takes)
					}
				}
				last = rng.Float64() < c.takes
			}
			if got := r.alerts(); !slices.Equal(got, []string{"endpoint_slowed"}) {
				t.Errorf("%s: alerts are %v", c.name, got)
			}
			mean := time.Since(begun) / openings
			if mean > c.most || mean < c.least {
				t.Errorf("%s: asked every %v on average, want %v to %v", c.name, mean, c.least, c.most)
			}
		})
	}
}
