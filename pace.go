package forbear

import (
	"math/bits"
	"sync"
	"time"
)

// pace is what lets durable work retry beyond its budget's share.
//
// A budget measures retries against new requests, and a caller who is refused
// has an answer. Work that must be done has none: at 20 % of hardly anything new
// it would wait for ever, though the dependency does what it is asked. So a
// dependency that succeeds earns retries. Each success earns two, the one that
// it was and one more, so that a backlog starts slowly and doubles; each retry
// beyond the share costs one; and when most of the latest attempts have failed,
// half of what was earned is gone. What is earned is little, and forgotten after
// a minute without a success: nobody saves up for the next outage.
//
// Retries thus never outnumber what demonstrably succeeds for long: those of a
// dependency that fails more often than not die out, and the share and its floor
// remain.
type pace struct {
	mu     sync.Mutex
	earned int
	good   time.Time // the latest success
	latest uint64    // how attempts ended, the latest in the lowest bit: 1 failed
	known  int       // of these bits
}

const (
	mostEarned = 100
	earnedFor  = time.Minute
	// Fewer ends than these say nothing about the dependency.
	fewestEnds = 16
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

// ended notes how an attempt of any kind ended.
func (p *pace) ended(o Outcome, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest <<= 1
	p.known = min(p.known+1, 64)
	if o != OutcomeFailed {
		p.earned, p.good = min(p.earned+2, mostEarned), now
		return
	}
	p.latest |= 1
	if p.known >= fewestEnds && 2*bits.OnesCount64(p.latest) > p.known {
		p.earned /= 2
		p.latest, p.known = 0, 0 // what follows is judged anew
	}
}
