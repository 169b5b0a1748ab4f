package forbear

import (
	"math/bits"
	"sync"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// earnings let durable work retry beyond its budget's share.
//
// A budget measures retries against new requests. That suits a caller who is refused: he
// has a result. Queued work has none. With little new traffic, 20 % is almost nothing:
// queued work would starve although the dependency is healthy.
//
// So a dependency earns retries by its successes. Each success earns two: one for itself
// and one more, so that a backlog starts slowly and doubles. Each retry beyond the budget's
// share costs one. While most of the latest attempts fail, nothing is earned, and every 16
// attempts halve what is left. The total is bounded by 100 and forgotten after a minute
// without a success, so that nothing is saved up for the next outage.
//
// A dependency that fails more often than not therefore gets only the budget's share and
// its floor: the sends stay below 1.2 times the first attempts and the successes.
type earnings struct {
	mu     sync.Mutex
	earned int
	good   time.Time // the latest success
	latest uint64    // how attempts ended, the latest in the lowest bit: 1 failed
	known  int       // of these bits
	since  int       // attempts since what was earned was halved
	more   chan struct{}
}

const (
	mostEarned = 100
	earnedFor  = time.Minute
	// Fewer attempts than these say nothing against a dependency.
	fewest = 16
	// So many successes in a row say that it is well again, as a breaker's
	// probes do.
	recovered = 8
)

// take takes one retry of those that are earned.
func (e *earnings) take(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.earned == 0 || now.Sub(e.good) > earnedFor {
		e.earned = 0
		return false
	}
	e.earned--
	return true
}

// left returns how many are earned.
func (e *earnings) left(now time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Sub(e.good) > earnedFor {
		return 0
	}
	return e.earned
}

// giveBack takes back a retry that was not made.
func (e *earnings) giveBack() {
	e.mu.Lock()
	e.earned = min(e.earned+1, mostEarned)
	e.mu.Unlock()
}

// ended records how an attempt of any kind ended.
func (e *earnings) ended(o breaker.Outcome, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latest <<= 1
	e.known, e.since = min(e.known+1, 64), e.since+1
	if o == breaker.Failed {
		e.latest |= 1
		if e.failing() && e.since >= fewest {
			e.earned, e.since = e.earned/2, 0
		}
		return
	}
	if e.failing() {
		if e.latest<<(64-recovered) != 0 {
			return
		}
		e.latest, e.known = 0, recovered
	}
	e.earned, e.good = min(e.earned+2, mostEarned), now
	if e.more != nil {
		close(e.more)
		e.more = nil
	}
}

// failing reports whether most of the latest attempts have failed, by more than chance
// explains at one half: otherwise a dependency that fails 45 % of its attempts would be
// limited to the budget's share a fifth of the time.
func (e *earnings) failing() bool {
	more := 2*bits.OnesCount64(e.latest) - e.known // failures than successes
	return e.known >= fewest && more > 0 && more*more > e.known
}

// forget begins anew: the breaker has closed, which takes good probes.
func (e *earnings) forget() {
	e.mu.Lock()
	e.latest, e.known = 0, 0
	e.mu.Unlock()
}

// next returns a channel that is closed with the next success.
func (e *earnings) next() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.more == nil {
		e.more = make(chan struct{})
	}
	return e.more
}
