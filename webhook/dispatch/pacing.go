package dispatch

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook"
)

// pacing spaces the probes of an endpoint that stays down. Its breaker says
// when an attempt may be made, half a minute apart at the most; pacing keeps a
// lane from asking each time: the wait doubles with each opening that no
// recovery came between, up to ten minutes. While it lasts nothing is claimed,
// so that what is due stays in the store.
//
// An endpoint that takes one message in sixteen is not down. Its breaker may hardly ever
// close, which takes five in a row, and it gets as many as may be tried then every five
// seconds all the same.
//
// It follows the breaker as an observer of its moves, and outlives the lane.
type pacing struct {
	// Called with the lock held: when the breaker opens, for the first time in an
	// outage or again, with the times it did while nothing came through; and when the
	// outage is over.
	opened func(first bool, times int, next time.Time)
	closed func()

	mu     sync.Mutex
	outage bool          // from the first opening to the closing
	wait   time.Duration // the breaker's own, when the outage began
	times  int           // that the wait is to be doubled
	failed int           // attempts since the latest success
	until  time.Time     // on the monotonic clock
}

// slowest bounds the wait for a probe: an endpoint that was down for a day is found
// within minutes when it is back.
const slowest = 10 * time.Minute

const (
	// firstWait is for how long an endpoint's breaker opens, each time: pacing makes
	// more of it.
	firstWait = 5 * time.Second
	// So many failures in a row say that nothing comes through.
	lifeless = 16
)

// observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (p *pacing) observer() *forbear.Observer {
	return &forbear.Observer{
		KeepsLog:     true,
		BreakerMoved: p.breakerMoved,
	}
}

func (p *pacing) breakerMoved(e breaker.Transition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.To {
	case breaker.Closed:
		p.outage, p.times, p.until = false, 0, time.Time{}
		p.closed()
	case breaker.Open:
		followed := e.Cause == breaker.CauseOtherProcess
		if followed {
			p.failed = lifeless
		}
		began, alive := !p.outage, p.failed < lifeless
		if p.outage = true; began {
			p.wait = e.OpenFor
		}
		if alive {
			p.times = 0
		}
		p.until = time.Now().Add(max(min(p.wait<<min(p.times, 16), slowest), e.OpenFor))
		if !alive {
			p.times++
		}
		if (began || !alive) && !followed {
			p.opened(began, p.times, p.until)
		}
	}
}

// follow waits on the word of another process, whose probes have failed so many times.
// It does not while some of this process succeed, nor when a probe of this process is
// due.
func (p *pacing) follow(times int, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outage && p.failed >= lifeless && time.Now().Before(p.until) {
		p.times, p.until = times, next
	}
}

// lookAgain makes the next probe due at once.
func (p *pacing) lookAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times, p.until = 0, time.Time{}
}

// slowed makes known that an endpoint's breaker has opened. Others follow while nothing
// comes through at all: an endpoint that fails in part is each process's own to pace.
func (d *Dispatcher) slowed(id string, first bool, times int, next time.Time) {
	n := finding{next: next}
	n.Endpoint, n.Kind, n.Why, n.Looks = id, heldDown, "breaker open", times
	if n.Begins = first; first {
		n.Alert = deadletter.Alert{Queue: webhook.QueueOf(id), Reason: "endpoint_slowed", Detail: "endpoint " + id + " keeps failing: attempts are spaced out"}
	}
	d.find(n)
}

// ended records how an attempt did, before the breaker hears of it.
func (p *pacing) ended(good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed++; good {
		p.failed = 0
	}
}

// alive reports whether some messages come through.
func (p *pacing) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed < lifeless
}

// probeAt returns when the next probe may be claimed, on the monotonic clock.
func (p *pacing) probeAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

// refused returns how long a delivery is put off that the breaker did not let
// through: behind the next probe, and not all at once. A breaker that is held
// open by hand does not move, so that a wait that is over begins anew.
func (p *pacing) refused() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !now.Before(p.until) {
		p.until = now.Add(p.wait)
	}
	left := p.until.Sub(now)
	return left + wait.Jitter(left/4)
}

// breaker returns where the lane's circuit breaker stands: closed, when its
// policy has none.
func (l *lane) breaker() breaker.State {
	if b := l.retryer.Breaker(); b != nil {
		return b.State()
	}
	return breaker.Closed
}

// probing returns how many of n deliveries may be claimed by what the breaker
// says, and otherwise when to ask again: behind a breaker that is not closed
// one at a time, since the receiver may have just come up; when some come through, as
// many as the breaker lets through to begin with. The lane is locked.
func (l *lane) probing(now time.Time, n int) (int, time.Time) {
	switch l.breaker() {
	case breaker.Open:
		if at := l.pacing.probeAt(); now.Before(at) {
			return 0, at
		}
		if l.pacing.alive() && !l.busy() {
			return min(n, l.retryer.Policy().Breaker.Probes), time.Time{}
		}
		fallthrough // the breaker moves when the probe asks it
	case breaker.HalfOpen:
		if l.busy() {
			return 0, time.Time{} // the probe's end asks again
		}
		return min(n, 1), time.Time{}
	}
	return n, time.Time{}
}

// closeBreaker closes the breaker of an endpoint that was enabled, unless an
// operator holds it.
func (l *lane) closeBreaker(now time.Time) {
	if b := l.retryer.Breaker(); b != nil && !b.Forced() {
		b.Force(breaker.Closed, "enabled", now)
		b.Release()
	}
}
