package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// ErrRate refuses messages to an application that has sent more than its rate. The
// error that wraps it is a [*RateError].
var ErrRate = errors.New("more messages than the application's rate")

// RateError says when an application may send again.
type RateError struct {
	Application string
	RetryAfter  time.Duration
}

// Error implements error.
func (e *RateError) Error() string { return fmt.Sprintf("application %q: %v", e.Application, ErrRate) }

// Unwrap returns [ErrRate].
func (e *RateError) Unwrap() error { return ErrRate }

// limits are token buckets by application, each of one second's worth. The zero
// value has none. It is safe for concurrent use.
type limits struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	prune   int // how many buckets are looked through for full ones
}

// bucket has what an application may still send, as it was at a time.
type bucket struct {
	tokens float64
	at     time.Time
	full   time.Time // when it is full again, like that of an application that sends nothing
}

// someBuckets is how many are kept without a look at which are needed.
const someBuckets = 1024

// limit takes the messages of a call from their applications' rates, or refuses it.
func (d *Dispatcher) limit(msgs []webhook.Message) error {
	counts := map[string]int{}
	for i := range msgs {
		for id := range d.applications(&msgs[i]) {
			counts[id]++
		}
	}
	for id, n := range counts {
		lanes := d.lanes.tenant(id)
		if len(lanes) == 0 || lanes[0].ep.conf.Tenant.Rate <= 0 {
			continue // no endpoint: nothing is stored
		}
		if wait := d.limits.take(id, lanes[0].ep.conf.Tenant.Rate, float64(n), time.Now()); wait > 0 {
			return &RateError{Application: id, RetryAfter: wait}
		}
	}
	return nil
}

// applications are those that a message is for: the one that it names, or those of its
// endpoints.
func (d *Dispatcher) applications(m *webhook.Message) map[string]bool {
	if m.Application != "" {
		return map[string]bool{m.Application: true}
	}
	var of map[string]bool
	for _, e := range m.Endpoints {
		if l := d.lane(e); l != nil && l.ep.conf.Application != "" {
			if of == nil {
				of = map[string]bool{}
			}
			of[l.ep.conf.Application] = true
		}
	}
	return of
}

// take takes n messages from a bucket of one second at a rate, or returns how long to
// wait for them. More than the bucket holds are taken from a full one, which owes
// them then: they would never fit otherwise.
func (l *limits) take(id string, rate, n float64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, full := l.buckets[id], max(rate, 1)
	if b == nil {
		b = &bucket{tokens: full, at: now}
		if l.buckets == nil {
			l.buckets, l.prune = map[string]*bucket{}, someBuckets
		}
		if len(l.buckets) >= l.prune {
			maps.DeleteFunc(l.buckets, func(_ string, b *bucket) bool { return !now.Before(b.full) })
			l.prune = max(someBuckets, 2*len(l.buckets))
		}
		l.buckets[id] = b
	}
	b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*rate, full)
	b.at = now
	if missing := min(n, full) - b.tokens; missing > 0 {
		return time.Duration(missing / rate * float64(time.Second))
	}
	b.tokens -= n
	b.full = now.Add(time.Duration((full - b.tokens) / rate * float64(time.Second)))
	return 0
}
