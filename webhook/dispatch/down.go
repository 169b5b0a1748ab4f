package dispatch

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/wait"
)

// An endpoint whose circuit breaker has opened is down. The breaker says when an attempt
// may be made, half a minute apart at the most; the hold keeps the receiver from asking
// each time: the wait doubles with each opening that no recovery came between, up to ten
// minutes. While it lasts nothing is claimed, so that what is due stays in the store.
//
// An endpoint that takes one message in sixteen is not down. Its breaker may hardly ever
// close, which takes five in a row, and it gets as many as may be tried then every five
// seconds all the same.
const (
	// firstWait is for how long an endpoint's breaker opens, each time: the hold makes
	// more of it.
	firstWait = 5 * time.Second
	// So many failures in a row say that nothing comes through.
	lifeless = 16
)

// breakerMoved follows the breaker of the present Retryer. The breaker's lock is held: here
// nothing may be asked of it but its state.
func (r *receiver) breakerMoved(e breaker.Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &r.holds[down]
	switch e.To {
	case breaker.Closed:
		*h = hold{}
		r.d.over(r.id, kindOf[down].name)
		r.d.ask(r.id)
	case breaker.Open:
		r.breakerOpened(h, e)
	}
}

// breakerOpened spaces the next probe, and makes known that the endpoint is down. Others
// follow while nothing comes through at all: an endpoint that fails in part is each
// process's own to pace.
func (r *receiver) breakerOpened(h *hold, e breaker.Transition) {
	failures := r.failures
	switch e.Cause {
	case breaker.CauseOtherProcess:
		failures = lifeless
		r.failures = max(r.failures, failures)
	case breaker.CauseOperator:
	default:
		failures++ // the attempt that moved it, which learn hears of next
	}
	began, alive := !h.on, failures < lifeless
	if h.on, h.why = true, "breaker open"; began {
		r.openFor = e.OpenFor
	}
	if alive {
		h.looks = 0
	}
	h.until = time.Now().Add(max(min(r.openFor<<min(h.looks, 16), slowest), e.OpenFor))
	if !alive {
		h.looks++
	}
	switch {
	case e.Cause == breaker.CauseOtherProcess:
	case began:
		r.began(down, h.why)
	case !alive:
		r.d.find(r.finding(down))
	}
}

// mayByBreaker returns how many of n deliveries may be claimed by what the breaker says,
// and otherwise when to ask again: behind a breaker that is not closed one at a time, since
// the receiver may have just come up; when some come through, as many as the breaker lets
// through to begin with. The caller holds mu.
func (r *receiver) mayByBreaker(now time.Time, n int) (int, time.Time) {
	switch r.breaker() {
	case breaker.Open:
		if r.holds[down].waits(now) {
			return 0, r.holds[down].until
		}
		if r.failures < lifeless && !r.busy() {
			return min(n, r.endpoint().retryer.Policy().Breaker.Probes), time.Time{}
		}
		fallthrough // the breaker moves when the probe asks it
	case breaker.HalfOpen:
		if r.busy() {
			return 0, time.Time{} // the probe's end asks again
		}
		return min(n, 1), time.Time{}
	}
	return n, time.Time{}
}

// behindProbe returns for how long a delivery is postponed that the breaker did not let
// through: behind the next probe, and not all at once. A breaker that is held open by hand
// does not move, so that a wait that is over begins anew.
func (r *receiver) behindProbe() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, now := &r.holds[down], time.Now()
	if !now.Before(h.until) {
		h.until = now.Add(r.openFor)
	}
	left := h.until.Sub(now)
	return left + wait.Jitter(left/4)
}

// breaker returns where the circuit breaker stands.
func (e *endpoint) breaker() breaker.State {
	if b := e.retryer.Breaker(); b != nil {
		return b.State()
	}
	return breaker.Closed
}

// closeBreaker closes the breaker of an endpoint that was enabled, unless an
// operator holds it.
func (e *endpoint) closeBreaker(now time.Time) {
	if b := e.retryer.Breaker(); b != nil && !b.Forced() {
		b.Force(breaker.Closed, "enabled", now)
		b.Release()
	}
}

// observer follows the breaker of one Retryer, as long as it is the receiver's. The log
// stays on beside it.
func (r *receiver) observer(of **forbear.Retryer) *forbear.Observer {
	return &forbear.Observer{
		KeepsLog: true,
		BreakerMoved: func(e breaker.Transition) {
			if ep := r.endpoint(); ep != nil && ep.retryer == *of {
				r.breakerMoved(e)
			}
		},
	}
}
