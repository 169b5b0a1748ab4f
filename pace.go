package forbear

import (
	"math/bits"
	"sync"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// pace is what lets durable work retry beyond its budget's share.
//
// A budget measures retries against new requests, and a caller who is refused
// has a result. Work that must be done has none: at 20 % of hardly anything new
// it would wait for ever, though the dependency does what it is asked. So a
// dependency that succeeds earns retries: each success two, the one that it was
// and one more, so that a backlog starts slowly and doubles. Each retry beyond
// the share costs one. While most of the latest attempts have failed nothing is
// earned, and half of what there is goes with every so many. What is earned is
// little, and forgotten after a minute without a success: nothing is saved up
// for the next outage.
//
// A dependency that fails more often than not is thus left with the budget's
// share and its floor: what is sent stays below 1.2 of the first attempts and
// what demonstrably succeeds.
type pace struct {
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
func (p *pace) take(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.earned == 0 || now.Sub(p.good) > earnedFor {
		p.earned = 0
		return false
	}
	p.earned--
	return true
}

// giveBack takes back a retry that was not made.
func (p *pace) giveBack() {
	p.mu.Lock()
	p.earned = min(p.earned+1, mostEarned)
	p.mu.Unlock()
}

// ended records how an attempt of any kind ended.
func (p *pace) ended(o breaker.Outcome, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest <<= 1
	p.known, p.since = min(p.known+1, 64), p.since+1
	if o == breaker.Failed {
		p.latest |= 1
		if p.failing() && p.since >= fewest {
			p.earned, p.since = p.earned/2, 0
		}
		return
	}
	if p.failing() {
		if p.latest<<(64-recovered) != 0 {
			return
		}
		p.latest, p.known = 0, recovered
	}
	p.earned, p.good = min(p.earned+2, mostEarned), now
	if p.more != nil {
		close(p.more)
		p.more = nil
	}
}

// failing reports whether most of the latest attempts have failed.
func (p *pace) failing() bool {
	return p.known >= fewest && 2*bits.OnesCount64(p.latest) > p.known
}

// forget begins anew: the breaker has closed, which takes good probes.
func (p *pace) forget() {
	p.mu.Lock()
	p.latest, p.known = 0, 0
	p.mu.Unlock()
}

// next returns a channel that is closed with the next success.
func (p *pace) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.more == nil {
		p.more = make(chan struct{})
	}
	return p.more
}
