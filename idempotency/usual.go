package idempotency

import (
	"cmp"
	"strings"
	"sync"
	"time"
)

const (
	// usualOperations bounds the operations that are told apart; the others share
	// what all runs of the handler took.
	usualOperations = 256
	// usualDecay is the part of the difference by which a shorter run shortens what is
	// usual: one long run is forgotten after some two dozen short ones.
	usualDecay = 8
	// The wait of a duplicate, and its Retry-After, before any run has been seen, and
	// their bounds.
	unseenWait   = 5 * time.Second
	shortestWait = time.Second
	longestWait  = 30 * time.Second
)

// usual learns how long operations take: as long as the longest of the latest runs. The
// zero value has seen none. It is safe for concurrent use.
type usual struct {
	mu  sync.Mutex
	all time.Duration
	of  map[string]time.Duration
}

// took learns from a run that has ended with a response that counts.
func (u *usual) took(operation string, d time.Duration) {
	shape := shapeOf(operation)
	d = max(d, 1)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = max(d, u.all-(u.all-d)/usualDecay)
	if u.of == nil {
		u.of = map[string]time.Duration{}
	}
	if old, known := u.of[shape]; known || len(u.of) < usualOperations {
		u.of[shape] = max(d, old-(old-d)/usualDecay)
	}
}

// time returns how long an operation usually takes, and 0 before any run was seen.
func (u *usual) time(operation string) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return cmp.Or(u.of[shapeOf(operation)], u.all)
}

// shapeOf is an operation without the parts of its path that name one of many things:
// segments with a digit, and long ones.
func shapeOf(operation string) string {
	segments := strings.Split(operation, "/")
	for i, s := range segments {
		if i > 0 && (len(s) > 32 || strings.ContainsAny(s, "0123456789")) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// patience is how long a duplicate waits here: a quarter longer than its operation usually
// takes, since the response of one that waited for just that long would often come a moment
// too late.
func (h *handler) patience(operation string) time.Duration {
	if h.Wait != 0 {
		return h.Wait
	}
	return max(shortestWait, min(cmp.Or(h.usual.time(operation)*5/4, unseenWait), longestWait))
}

// retryAfter is when a duplicate that has waited is to come back: when the run will
// have taken what it usually takes, or, when it has outlasted that, half as long
// again. A run whose lease ends sooner is decided then.
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
