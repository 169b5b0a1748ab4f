package foreign

import (
	"math"
	"time"

	"github.com/forbear-go/forbear/policyfile"
)

// grow sets waits whose factor is the product's own: the first, and each factor times the
// one before, up to most; 0 sets no bound. The number of retries must be known by then.
func grow(d *policyfile.Dependency, first time.Duration, factor float64, most time.Duration) {
	wait(d, grows(first, factor, most))
	b := &d.Policy.Backoff
	b.Base, b.Cap = first, max(b.Cap, most, first)
}

// wait sets the waits of d before each retry, the first of which is number 0. The number of
// retries must be known by then.
func wait(d *policyfile.Dependency, before func(retry int) time.Duration) {
	const most = 64 // waits; those that follow are as long as the last one
	b := &d.Policy.Backoff
	steps := []time.Duration{0}
	for retry := range min(d.Policy.Retries(), most) {
		step := before(retry)
		steps = append(steps, step)
		b.Cap = max(b.Cap, step)
	}
	if len(steps) > 1 {
		b.Base, b.Schedule = steps[1], steps
	}
}

// grows returns waits that a factor makes longer, up to most; 0 sets no bound.
func grows(first time.Duration, factor float64, most time.Duration) func(int) time.Duration {
	return func(retry int) time.Duration {
		ns := float64(first) * math.Pow(factor, float64(retry))
		if math.IsNaN(ns) {
			return first // YAML can write such a factor; and zero times an infinite one is none
		}
		step := saturated(ns, 1)
		if most > 0 {
			return min(step, most)
		}
		return step
	}
}

// each is how long a product waits that always waits as long, for a message.
func each(wait time.Duration) any {
	if wait == 0 {
		return "equally long" // or not at all: what cannot be read is zero
	}
	return wait
}
