package storm

import (
	"math"
	"slices"
)

// One run is one course of chance: near the edge, another seed ends in another way. What
// follows says what several seeds show, and how surely.

// reseeded returns s for the i-th of several runs; the first keeps the seed, and no other
// has one that a user would write.
func (s Scenario) reseeded(i int) Scenario {
	s.Seed += uint64(i) << 32
	return s
}

// confidence95 is the quantile of the normal distribution for 95 %, two-sided.
const confidence95 = 1.959964

// wilson returns the 95 % interval of a share that was n of all, 0 to 1: Wilson's, which
// holds for few runs and for none of them.
func wilson(n, all int) [2]float64 {
	if all == 0 {
		return [2]float64{0, 1}
	}
	const z2 = confidence95 * confidence95
	total, share := float64(all), float64(n)/float64(all)
	middle := share + z2/(2*total)
	half := confidence95 * math.Sqrt(share*(1-share)/total+z2/(4*total*total))
	return [2]float64{max(0, (middle-half)/(1+z2/total)), min(1, (middle+half)/(1+z2/total))}
}

// median returns the middle of values, and an interval that holds the true median with a
// confidence of 95 %: between two of the values, whatever their distribution. For fewer
// than six values there is none, and the interval is all of them. It sorts values.
func median(values []Duration) (middle, low, high Duration) {
	slices.Sort(values)
	n := len(values)
	// The number of values below the true median is that of heads in n tosses.
	rank, tail, p := 0, 0.0, math.Pow(0.5, float64(n))
	for ; rank < n/2; rank++ {
		if tail += p; 2*tail > 0.05 {
			break
		}
		p *= float64(n-rank) / float64(rank+1)
	}
	first := max(rank-1, 0)
	return values[(n-1)/2], values[first], values[n-1-first]
}
