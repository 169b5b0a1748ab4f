package forbear_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
)

// jitters are shapes of waits, in parts of the ceiling, from a draw in [0, 1).
var jitters = map[string]func(u float64) float64{
	"full":               func(u float64) float64 { return u },
	"equal":              func(u float64) float64 { return 0.5 + u/2 },
	"fixed":              func(float64) float64 { return 1 },
	"plus or minus 20 %": func(u float64) float64 { return (0.8 + 0.4*u) / 1.2 },
	"squared":            func(u float64) float64 { return u * u },
	"whole tenths":       func(u float64) float64 { return math.Floor(u*10) / 10 },
}

func sampleOf(n int, shape func(float64) float64) []float64 {
	rng := rand.New(rand.NewPCG(5, 6))
	sample := make([]float64, n)
	for i := range sample {
		sample[i] = shape(rng.Float64())
	}
	return sample
}

// kolmogorovSmirnov returns the largest distance between the sample's
// distribution and the uniform one on [0, 1].
func kolmogorovSmirnov(sample []float64) float64 {
	sorted := slices.Sorted(slices.Values(sample))
	n, d := float64(len(sorted)), 0.0
	for i, x := range sorted {
		d = max(d, x-float64(i)/n, float64(i+1)/n-x)
	}
	return d
}

// uniform reports whether a sample may be uniform on [0, 1], at a level of one
// false alarm in a thousand.
func uniform(sample []float64) bool {
	return kolmogorovSmirnov(sample) < 1.9495/math.Sqrt(float64(len(sample)))
}

type moments struct{ mean, variance, belowHalf, lag1 float64 }

func momentsOf(sample []float64) (m moments) {
	n := float64(len(sample))
	for _, x := range sample {
		m.mean += x / n
		if x < 0.5 {
			m.belowHalf += 1 / n
		}
	}
	for i, x := range sample {
		m.variance += (x - m.mean) * (x - m.mean) / n
		if i > 0 {
			m.lag1 += (x - m.mean) * (sample[i-1] - m.mean) / n
		}
	}
	if m.variance > 0 {
		m.lag1 /= m.variance
	}
	return m
}

func TestUniformRejectsOtherJitters(t *testing.T) {
	for name, shape := range jitters {
		if got := uniform(sampleOf(5000, shape)); got != (name == "full") {
			t.Errorf("%s jitter: uniform = %v", name, got)
		}
	}
}

// the wait is uniform in [0, ceiling], at every retry, and under a
// deadline in [0, what is left].
func TestR1WaitsAreUniform(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		name    string
		policy  forbear.Policy
		state   forbear.State
		ceiling time.Duration
	}{
		{"first retry", forbear.Policy{}, forbear.State{Attempt: 1}, time.Second},
		{"second retry", forbear.Policy{}, forbear.State{Attempt: 2}, 2 * time.Second},
		{"third retry", forbear.Policy{}, forbear.State{Attempt: 3}, 4 * time.Second},
		{"cut to what is left", forbear.Policy{}, forbear.State{Attempt: 3, Deadline: now.Add(1600 * time.Millisecond)}, 1500 * time.Millisecond},
		{"webhook, full", forbear.Policy{Kind: forbear.Webhook, Backoff: forbear.Backoff{Jitter: forbear.JitterFull}}, forbear.State{Attempt: 4}, 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(21, 22)).Float64
			sample := make([]float64, 5000)
			for i := range sample {
				d := forbear.Decide(&tt.policy, tt.state, transient, now, draw)
				if d.Ceiling != tt.ceiling {
					t.Fatalf("ceiling: got %v, want %v", d.Ceiling, tt.ceiling)
				}
				sample[i] = float64(d.Wait) / float64(tt.ceiling)
			}
			if !uniform(sample) {
				t.Errorf("waits are not uniform: distance %.4f", kolmogorovSmirnov(sample))
			}
		})
	}
}
