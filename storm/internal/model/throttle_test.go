package model

import (
	"math"
	"testing"
	"time"
)

// The SRE book's formula with its multiplier and its window.
func TestThrottle(t *testing.T) {
	b, start := NewThrottle(2, 2*time.Minute), StartOfTime()
	for _, step := range []struct {
		after, requests, accepts int // after in seconds
		want                     float64
	}{{0, 100, 0, 0.990099}, {0, 0, 30, 0.396040}, {0, 0, 20, 0}, {200, 0, 0, 0}} {
		now := start.Add(time.Duration(step.after) * time.Second)
		for range step.requests {
			b.Request(now)
		}
		for range step.accepts {
			b.Accepted(now)
		}
		if got := b.RejectProbability(now); math.Abs(got-step.want) > 1e-6 {
			t.Errorf("%+v: %v", step, got)
		}
	}
}
