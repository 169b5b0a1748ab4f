// Package rate bounds how often something happens for each of many names.
package rate

import (
	"maps"
	"sync"
	"time"
)

// Limits are token buckets by name, each of one second's worth. The zero
// value has none. It is safe for concurrent use.
type Limits struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	prune   int // how many buckets are looked through for full ones
}

// bucket has what a name may still take, as it was at a time.
type bucket struct {
	tokens float64
	at     time.Time
	full   time.Time // when it is full again, like that of a name that takes nothing
}

// someBuckets is how many are kept without a look at which are needed.
const someBuckets = 1024

// Take takes n from the bucket of a name at a rate, per second, or returns how long to
// wait for them. More than the bucket holds are taken from a full one, which owes
// them then: they would never fit otherwise.
func (l *Limits) Take(name string, rate, n float64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, full := l.buckets[name], max(rate, 1)
	if b == nil {
		b = &bucket{tokens: full, at: now}
		if l.buckets == nil {
			l.buckets, l.prune = map[string]*bucket{}, someBuckets
		}
		if len(l.buckets) >= l.prune {
			maps.DeleteFunc(l.buckets, func(_ string, b *bucket) bool { return !now.Before(b.full) })
			l.prune = max(someBuckets, 2*len(l.buckets))
		}
		l.buckets[name] = b
	}
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*rate, full)
	b.at = now
	if wait := span(min(n, full)-b.tokens, rate); wait > 0 { // a part of a nanosecond is none
		return wait
	}
	b.tokens -= n
	b.full = now.Add(span(full-b.tokens, rate))
	return 0
}

// span is how long n take at a rate, which may be next to nothing: a century at most.
func span(n, rate float64) time.Duration {
	return time.Duration(min(n/rate, century) * float64(time.Second))
}

const century = 100 * 365 * 24 * 60 * 60 // in seconds
