package model

import (
	"math"
	"math/bits"
)

// histogram counts durations in buckets of at most 1.6 % width. Each power
// of two has 64 buckets of one width, as in an HDR histogram, so that a bucket is found without a search
// and a nanosecond takes no more room than a day.
type histogram struct {
	counts []float64
	total  float64
	used   [2]int // range of buckets in use, the second exclusive
}

const (
	histBits = 6 // sub-buckets of each power of two, as a power of two
	histSize = (64 - histBits) << histBits
)

// bucketOf returns the bucket of a duration. What is below 64 ns is exact.
func bucketOf(ns int64) int {
	u := uint64(max(ns, 0))
	if u < 1<<histBits {
		return int(u)
	}
	e := bits.Len64(u) - histBits - 1
	return (e+1)<<histBits + int(u>>e)&(1<<histBits-1)
}

// middleOf returns the middle of bucket i in ns.
func middleOf(i int) float64 {
	if i < 1<<histBits {
		return float64(i)
	}
	e := i>>histBits - 1
	low := float64(uint64(1<<histBits|i&(1<<histBits-1)) << e)
	return low + float64(uint64(1)<<e)/2
}

// newHistogram returns an empty histogram: 29 KiB, of which only the buckets in use
// are ever looked at.
func newHistogram() *histogram {
	return &histogram{counts: make([]float64, histSize), used: [2]int{histSize, 0}}
}

// add counts a call that took ns.
func (h *histogram) add(ns int64) {
	i := bucketOf(ns)
	h.counts[i]++
	h.total++
	h.used[0] = min(h.used[0], i)
	h.used[1] = max(h.used[1], i+1)
}

// quantile returns the duration in seconds below which the part q of all lies,
// or NaN when there is none.
func (h *histogram) quantile(q float64) float64 {
	if h.total <= 0 {
		return math.NaN()
	}
	want := q * h.total
	for i := h.used[0]; i < h.used[1]; i++ {
		if want -= h.counts[i]; want <= 0 {
			return middleOf(i) / 1e9
		}
	}
	return middleOf(h.used[1]-1) / 1e9
}

// reset empties h into sum. It is called for every bin of a run, and costs as much
// as there are buckets in use.
func (h *histogram) reset(sum *histogram) {
	for i := h.used[0]; i < h.used[1]; i++ {
		if c := h.counts[i]; c != 0 {
			sum.counts[i] += c
			h.counts[i] = 0
		}
	}
	if h.total > 0 {
		sum.total += h.total
		sum.used[0] = min(sum.used[0], h.used[0])
		sum.used[1] = max(sum.used[1], h.used[1])
	}
	h.total, h.used = 0, [2]int{histSize, 0}
}
