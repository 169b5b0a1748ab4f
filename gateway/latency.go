package gateway

import (
	"context"
	"math/bits"
	"sync/atomic"
	"time"
)

// latency says how long the latest attempts took. It implements [metric.Series] without a
// lock, and allocates once in a window. The zero value is ready.
type latency struct{ now, before atomic.Pointer[bins] }

// bins count durations, eight bins for each doubling from 65 µs to 2 minutes. What is
// shorter or longer is in the first or the last. They take 672 bytes.
type bins [21 << binBits]atomic.Uint32

const (
	binBits   = 3
	leastBits = 16 // of the shortest duration that has a bin of its own, in nanoseconds
)

// latencyWindow is how long one window counts before it becomes the one before.
const latencyWindow = 5 * time.Minute

// Record implements [metric.Series].
func (l *latency) Record(_ context.Context, seconds float64) {
	b := l.now.Load()
	for b == nil {
		l.now.CompareAndSwap(nil, new(bins))
		b = l.now.Load()
	}
	b[binOf(time.Duration(seconds*1e9))].Add(1)
}

// turn begins a new window.
func (l *latency) turn() { l.before.Store(l.now.Swap(nil)) }

// status returns the quantiles of both windows, or nil when nothing is in them.
func (l *latency) status() *LatencyStatus {
	var all [len(bins{})]uint64
	total := uint64(0)
	for _, b := range [...]*bins{l.now.Load(), l.before.Load()} {
		if b == nil {
			continue
		}
		for i := range b {
			n := uint64(b[i].Load())
			all[i] += n
			total += n
		}
	}
	if total == 0 {
		return nil
	}
	quantile := func(percent uint64) Duration {
		rank, seen, i := (total*percent+99)/100, uint64(0), 0
		for ; i < len(all)-1; i++ {
			if seen += all[i]; seen >= rank {
				break
			}
		}
		return Duration(middle(i))
	}
	return &LatencyStatus{quantile(50), quantile(99)}
}

// binOf returns the bin of a duration.
func binOf(d time.Duration) int {
	e := bits.Len64(uint64(max(d, 0))) - 1
	if e < leastBits {
		return 0
	}
	i := (e-leastBits)<<binBits + int(d>>(e-binBits))&(1<<binBits-1)
	return min(i, len(bins{})-1)
}

// middle returns the middle of a bin.
func middle(i int) time.Duration {
	lowest := time.Duration(1<<binBits+i&(1<<binBits-1)) << (i>>binBits + leastBits - binBits)
	return lowest + time.Duration(1)<<(i>>binBits+leastBits-binBits-1)
}
