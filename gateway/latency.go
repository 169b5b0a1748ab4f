package gateway

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// latency says how long the latest attempts took. It implements [metric.Series] without a
// lock, and allocates once in a window. The zero value is ready.
type latency struct{ now, before atomic.Pointer[bins] }

// bins count durations, eight bins for each doubling from 61 µs to 128 s. What is shorter or
// longer is in the first or the last. They take 672 bytes.
type bins [21 * 8]atomic.Uint32

// A float64 is its exponent, and then its fraction: the first three bits of that tell the bins
// of a doubling apart.
const fraction = 52 - 3

var leastBin = int(math.Float64bits(0x1p-14) >> fraction)

// Record implements [metric.Series].
func (l *latency) Record(_ context.Context, seconds float64) {
	b := l.now.Load()
	for b == nil {
		l.now.CompareAndSwap(nil, new(bins))
		b = l.now.Load()
	}
	bin := int(math.Float64bits(max(seconds, 0))>>fraction) - leastBin
	b[min(max(bin, 0), len(b)-1)].Add(1)
}

// turn begins a new window.
func (l *latency) turn() { l.before.Store(l.now.Swap(nil)) }

// status returns the quantiles of both windows, or nil when nothing is in them.
func (l *latency) status() *LatencyStatus {
	var all [len(bins{})]uint64
	total := uint64(0)
	for _, b := range [...]*bins{l.now.Load(), l.before.Load()} {
		for i := 0; b != nil && i < len(b); i++ {
			n := uint64(b[i].Load())
			all[i] += n
			total += n
		}
	}
	if total == 0 {
		return nil
	}
	quantile := func(percent uint64) Duration {
		i, seen := 0, all[0]
		for ; seen < (total*percent+99)/100; seen += all[i] {
			i++
		}
		middle := math.Float64frombits(uint64(leastBin+i)<<fraction + 1<<(fraction-1))
		return Duration(time.Duration(middle * float64(time.Second)).Round(time.Microsecond))
	}
	return &LatencyStatus{quantile(50), quantile(99)}
}
