package dispatch

import (
	"reflect"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// lane is the way of one endpoint's deliveries from the store to the endpoint:
// its slots, its rate, and the Retryer with its breaker and budget. A lane takes
// no more than it can send, so that what is due for an endpoint that hangs stays
// in the store and stands in no other endpoint's way.
type lane struct {
	d       *Dispatcher
	stored  webhook.Endpoint // what it was made of
	ep      *endpoint
	retryer *forbear.Retryer
	pacing  *pacing

	mu       sync.Mutex
	inFlight int           // slots that are taken
	buffer   []*job        // claimed ahead, without a slot yet
	due      time.Time     // when the lane has work, as far as is known; zero: unknown
	latency  time.Duration // of attempts, smoothed
	size     int           // of the bodies that were claimed, in bytes, smoothed
	tokens   float64       // of the endpoint's rate
	refilled time.Time     // when tokens was counted
	sending  int           // attempts under way
	waiting  int           // retries that wait in their slot for the pace
	// restrained is until when nothing is claimed, since retries are refused.
	restrained time.Time
}

// quick is the latency up to which a lane takes deliveries ahead. Behind slower
// attempts their leases would run out in the buffer.
const quick = 200 * time.Millisecond

// maxAhead bounds the bodies that a lane takes ahead, in bytes.
const maxAhead = 8 << 20

// serves reports whether the lane was made for e's configuration, and if so
// takes over the state that the store has for it.
func (l *lane) serves(e *webhook.Endpoint) bool {
	if !sameConfiguration(l.stored, *e) {
		return false
	}
	if l.ep.adopt(e) {
		l.dueAt(time.Now())
		l.ep.lookAgain()
		l.closeBreaker(l.d.now())
	}
	return true
}

// sameConfiguration reports whether two endpoints have the same configuration, and their
// applications. Versions alone do not tell: a store that was brought back from a backup
// gives the same ones again.
func sameConfiguration(a, b webhook.Endpoint) bool {
	for _, e := range []*webhook.Endpoint{&a, &b} {
		e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince, e.Held = "", "", "", time.Time{}, time.Time{}, ""
	}
	return reflect.DeepEqual(a, b)
}

// want returns how many deliveries the lane can take now, and otherwise when it
// should be asked again; zero means: when something happens. The rate is taken
// along, and [lane.take] gives back what was not claimed.
func (l *lane) want(now time.Time) (n int, next time.Time) {
	if !l.ep.enabled() {
		return 0, time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.due.IsZero():
		return 0, time.Time{}
	case l.due.After(now):
		return 0, l.due
	case l.restrained.After(now):
		return 0, l.restrained
	}
	// Not for a few: a claim costs the store the same for one as for fifty.
	limit := l.depth()
	n = limit - l.inFlight - len(l.buffer)
	if n < max(limit/4, 1) && l.inFlight > 0 {
		return 0, time.Time{} // an attempt that ends asks again
	}
	if n, next = l.ep.hold.allow(now, n, l.busy()); n <= 0 {
		return 0, next
	}
	if n, next = l.resolving(now, n); n <= 0 {
		return 0, next
	}
	if n, next = l.ep.rejects.allow(now, n, l.busy()); n <= 0 {
		return 0, next
	}
	if n, next = l.probing(now, n); n <= 0 {
		return 0, next
	}
	if n, next = l.afford(now, n); n > 0 {
		l.due = time.Time{} // what is learned from now on counts
	}
	return n, next
}

// busy reports whether the lane holds any delivery. The caller holds mu.
func (l *lane) busy() bool { return l.inFlight+len(l.buffer) > 0 }

// depth returns how many deliveries the lane may hold: those in flight, and
// ahead of them as many as keep it busy while the next are being claimed. The
// quicker the receiver, the more, and of large messages fewer. The caller holds mu.
func (l *lane) depth() int {
	n := l.ep.slots()
	ahead := 4 * n
	switch {
	case l.latency >= quick || l.breaker() != breaker.Closed:
		return n
	case l.latency >= quick/4:
		ahead = n
	}
	if l.size > 0 {
		ahead = min(ahead, maxAhead/l.size)
	}
	return n + ahead
}

// afford takes up to n from this process's part of the endpoint's rate: a token
// bucket that holds a tenth of a second's worth. The caller holds mu.
func (l *lane) afford(now time.Time, n int) (int, time.Time) {
	r := l.ep.conf.Rate
	if r <= 0 {
		return n, time.Time{}
	}
	part, next := l.d.members.part(now)
	if part == 0 {
		return 0, next
	}
	r *= part
	burst := max(r/10, 1)
	if l.refilled.IsZero() {
		l.tokens = burst
	} else {
		l.tokens = min(l.tokens+now.Sub(l.refilled).Seconds()*r, burst)
	}
	l.refilled = now
	if l.tokens < 1 {
		// Not at once: what is missing may be too little for a nanosecond.
		return 0, now.Add(max(time.Duration((1-l.tokens)/r*float64(time.Second)), time.Microsecond))
	}
	n = min(n, int(l.tokens))
	l.tokens -= float64(n)
	return n, time.Time{}
}

// take gives the lane what was claimed for it, of n that it wanted. What it did
// not get goes back to its rate.
func (l *lane) take(list []*store.Delivery, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ep.conf.Rate > 0 {
		l.tokens += float64(n - len(list))
	}
	for _, dl := range list {
		l.size += (len(dl.Message.Body) - l.size) / 8
		j := &job{lane: l, delivery: dl}
		if l.inFlight < l.ep.slots() {
			l.inFlight++
			l.d.workers.Go(func() { l.work(j) })
		} else {
			l.buffer = append(l.buffer, j)
		}
	}
}

// work does jobs in one slot until the lane has none left. It wakes the main loop
// when the buffer is half empty, so that the next claim is there before it is
// quite empty, and when the slot becomes free.
func (l *lane) work(j *job) {
	for {
		j.process()
		l.mu.Lock()
		if len(l.buffer) == 0 {
			l.inFlight--
			l.mu.Unlock()
			l.d.ask(l.ep.id())
			return
		}
		j = l.buffer[0]
		l.buffer = l.buffer[1:]
		low := len(l.buffer) == l.ep.slots()/2
		l.mu.Unlock()
		if low {
			l.d.ask(l.ep.id())
		}
	}
}

// drain empties the buffer, when the dispatcher stops: what waits for a slot goes
// back to the store at once, and not after the attempts under way.
func (l *lane) drain() []*job {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.buffer
	l.buffer = nil
	return list
}

// dueAt records that the lane has work from t on. The earliest such time counts,
// until the lane has asked for a claim.
func (l *lane) dueAt(t time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.due.IsZero() || t.Before(l.due) {
		l.due = t
	}
	l.d.agenda.ask(l.ep.id())
}

// attemptTimeout returns how long an attempt may take.
func (l *lane) attemptTimeout() time.Duration {
	p := l.retryer.Policy()
	return p.AttemptTimeout()
}

// begin counts an attempt that is sent. Each is followed by end.
func (l *lane) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending++
}

// end counts an attempt that is over. A success may earn the retries that the
// lane was restrained for.
func (l *lane) end(r *response, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending--
	if r.delivered() && !l.restrained.IsZero() {
		l.restrained = time.Time{}
		l.d.agenda.ask(l.ep.id())
	}
	switch {
	case !r.counts():
	case l.latency == 0:
		l.latency = took
	default:
		l.latency += (took - l.latency) / 8
	}
}

// inherit takes over what another lane knows of the same receiver. The breaker,
// the budget and the pacing stay while the policy and the concurrency do.
func (l *lane) inherit(old *lane) {
	old.mu.Lock()
	l.latency, l.size = old.latency, old.size
	old.mu.Unlock()
	l.ep.names, l.ep.rejects = old.ep.names, old.ep.rejects
	old.ep.mu.Lock()
	l.ep.failures, l.ep.refusals, l.ep.suspected, l.ep.good = old.ep.failures, old.ep.refusals, old.ep.suspected, old.ep.good
	old.ep.mu.Unlock()
	if reflect.DeepEqual(l.ep.conf.Policy, old.ep.conf.Policy) && l.ep.slots() == old.ep.slots() {
		l.retryer, l.pacing = old.retryer, old.pacing
	}
}
