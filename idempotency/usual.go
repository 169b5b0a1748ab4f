package idempotency

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// usualRuns is how many of the latest runs say how long one usually takes.
	usualRuns = 64
	// usualOperations bounds the operations that are told apart; the others share
	// what all runs of the handler took.
	usualOperations = 256
	// The wait of a duplicate, and its Retry-After, before any run has been seen, and
	// their bounds.
	unseenWait   = 5 * time.Second
	shortestWait = time.Second
	longestWait  = 30 * time.Second
)

// usual learns how long operations take. The zero value has seen none. It is safe for
// concurrent use.
type usual struct {
	mu  sync.Mutex
	all runs
	of  map[string]*runs
}

// runs are the latest durations of an operation.
type runs struct {
	took [usualRuns]time.Duration
	n    int
}

func (r *runs) add(d time.Duration) {
	r.took[r.n%usualRuns] = d
	r.n++
}

// p90 returns what nine of ten runs did not outlast, and 0 before any.
func (r *runs) p90() time.Duration {
	n := min(r.n, usualRuns)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.took[:n]))
	return max(sorted[(9*n+9)/10-1], 1)
}

// took learns from a run that has ended with a response that counts.
func (u *usual) took(operation string, d time.Duration) {
	shape := shapeOf(operation)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.add(d)
	r := u.of[shape]
	if r == nil {
		if len(u.of) >= usualOperations {
			return
		}
		if u.of == nil {
			u.of = map[string]*runs{}
		}
		r = &runs{}
		u.of[shape] = r
	}
	r.add(d)
}

// time returns how long an operation usually takes, and 0 before any run was seen.
func (u *usual) time(operation string) time.Duration {
	shape := shapeOf(operation)
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := u.of[shape]; r != nil {
		return r.p90()
	}
	return u.all.p90()
}

// shapeOf is an operation without what names one of many things in its path: segments
// with a digit, and long ones.
func shapeOf(operation string) string {
	segments := strings.Split(operation, "/")
	for i, s := range segments {
		if i > 0 && (len(s) > 32 || strings.ContainsAny(s, "0123456789")) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// patience is how long a duplicate waits here.
func (h *handler) patience(operation string) time.Duration {
	if h.Wait != 0 {
		return h.Wait
	}
	if d := h.usual.time(operation); d > 0 {
		return max(shortestWait, min(d, longestWait))
	}
	return unseenWait
}

// retryAfter is when a duplicate that has waited is to come back: when the run will
// have taken what it usually takes, or, when it has outlasted that, half as long
// again. A run that is alive by its lease for less is decided then.
func (h *handler) retryAfter(operation string, waited, leaseLeft time.Duration) time.Duration {
	d := h.usual.time(operation)
	switch {
	case d == 0:
		d = unseenWait
	case waited < d:
		d -= waited
	default:
		d /= 2
	}
	return max(shortestWait, min(d, leaseLeft, longestWait))
}
