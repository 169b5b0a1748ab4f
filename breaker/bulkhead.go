package breaker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
)

// Bulkhead bounds the calls to a dependency that are under way at once. A call
// that finds it full fails at once: waiting in line is what it prevents. It is
// safe for concurrent use.
type Bulkhead struct {
	limit int64
	inUse atomic.Int64
}

// NewBulkhead returns a bulkhead for limit calls at once.
func NewBulkhead(limit int) *Bulkhead { return &Bulkhead{limit: int64(limit)} }

// Enter takes a place and reports whether there was one. Each place taken is
// given back with [Bulkhead.Leave].
func (b *Bulkhead) Enter() bool {
	if b.inUse.Add(1) <= b.limit {
		return true
	}
	b.inUse.Add(-1)
	return false
}

// Leave gives a place back.
func (b *Bulkhead) Leave() { b.inUse.Add(-1) }

// Available returns how many calls could enter now.
func (b *Bulkhead) Available() int { return int(max(b.limit-b.inUse.Load(), 0)) }

// Limit returns how many calls may be under way at once.
func (b *Bulkhead) Limit() int { return int(b.limit) }

// BulkheadSize returns the size for a dependency by INTG-STD-033's rule: peak
// rate in calls per second x 99th percentile of the latency x a headroom of 1.5
// to 2, at least 1. Headrooms outside that range are moved into it. It panics when the
// rate is NaN or infinite.
func BulkheadSize(peakPerSecond float64, p99 time.Duration, headroom float64) int {
	finite.Must("breaker: calls per second", peakPerSecond)
	headroom = min(max(headroom, 1.5), 2)
	return max(int(math.Ceil(peakPerSecond*p99.Seconds()*headroom)), 1)
}
