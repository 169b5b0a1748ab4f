package window

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Sharded counts in slots from many goroutines without a lock: each event is
// one atomic addition in one of a few shards. The slot at the window's edge is
// left out: the sum is never too large.
type Sharded struct {
	width  time.Duration
	mask   uint32
	shards []shard
}

// A cell packs the number of its slot (upper half) and its count (lower half).
type shard struct {
	cells [ring]atomic.Uint64
}

const maxShards = 16

// NewSharded returns an empty counter over span, for frequent events.
func NewSharded(span time.Duration) *Sharded {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	if n > 1 {
		n = min(2*n, maxShards) // fewer meetings than one shard a processor
	}
	return &Sharded{width: Width(span), mask: uint32(n - 1), shards: make([]shard, n)}
}

// NewSingle returns an empty counter over span with one shard: small, for what
// happens now and then.
func NewSingle(span time.Duration) *Sharded {
	return &Sharded{width: Width(span), shards: make([]shard, 1)}
}

// Add counts n events at the given time. It is safe for concurrent use, takes
// no lock and allocates nothing.
func (w *Sharded) Add(now time.Time, n uint32) { w.AddAt(now.Sub(epoch), n) }

// AddAt is [Sharded.Add] for a time that is counted from [Epoch].
func (w *Sharded) AddAt(since time.Duration, n uint32) {
	slot := slotAt(since, w.width)
	// The nanoseconds of the clock spread concurrent events over the shards as
	// well as random numbers would, and are at hand.
	i := uint32(uint64(since)*0x9e3779b97f4a7c15>>32) & w.mask
	cell := &w.shards[i].cells[slot%ring]
	for {
		old := cell.Load()
		if uint32(old>>32) == slot {
			// Another goroutine may open the next round of this cell in
			// between; the event then counts there, which is later, not lost.
			cell.Add(uint64(n))
			return
		}
		if uint32(old) != 0 && age(slot, uint32(old>>32)) >= 1<<31 {
			return // an event from before the cell's present round
		}
		if cell.CompareAndSwap(old, uint64(slot)<<32|uint64(n)) {
			return
		}
	}
}

// Sum returns the number of events in the window that ends now. It is safe for
// concurrent use.
func (w *Sharded) Sum(now time.Time) int64 {
	slot := slotOf(now, w.width)
	var sum int64
	for i := range w.shards {
		for j := range w.shards[i].cells {
			if v := w.shards[i].cells[j].Load(); age(slot, uint32(v>>32)) < Slots {
				sum += int64(uint32(v))
			}
		}
	}
	return sum
}
