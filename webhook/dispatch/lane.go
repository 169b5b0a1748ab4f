package dispatch

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook"
)

// lane is one endpoint at work: its slots, its rate, and the Retryer with its
// breaker and budget. A lane takes no more than it can send, so that what is due for an
// endpoint that hangs stays in the store and stands in nobody's way.
type lane struct {
	d       *Dispatcher
	retryer *forbear.Retryer
	pacing  *pacing
	hold    *hold
	cred    *credential
	target  target

	mu       sync.Mutex
	ep       webhook.Endpoint
	signer   *webhook.Signer // nil: to be made from references at send time
	inFlight int
	buffer   []*webhook.Delivery
	due      time.Time     // when the lane has work, as far as is known; zero: unknown
	latency  time.Duration // of attempts, smoothed
	tokens   float64
	refilled time.Time
	failures int // in a row
	sending  int // attempts under way
	waiting  int // retries that wait in their slot for the pace
	// restrained is until when nothing is claimed, since retries are refused.
	restrained time.Time
}

const (
	defaultSlots   = 10             // in flight, of one endpoint
	defaultDisable = 24 * time.Hour // of failures
)

// quick is the latency up to which a lane takes deliveries ahead.
const quick = 200 * time.Millisecond

// want returns how many deliveries the lane can take now, and otherwise when it
// should be asked again; zero means: when something happens.
func (l *lane) want(now time.Time) (n int, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ep.State != webhook.Enabled || l.due.IsZero() {
		return 0, time.Time{}
	}
	if l.due.After(now) {
		return 0, l.due
	}
	if l.restrained.After(now) {
		return 0, l.restrained
	}
	limit := l.depth()
	n = limit - l.inFlight - len(l.buffer)
	if n < max(limit/4, 1) && l.inFlight > 0 {
		return 0, time.Time{} // an attempt that ends asks again
	}
	if n, next = l.hold.allow(now, n, l.inFlight+len(l.buffer) > 0); n <= 0 {
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

// depth returns how many deliveries the lane may hold: those in flight, and
// ahead of them as many as keep it busy while the next are being claimed. The
// quicker the receiver, the more.
func (l *lane) depth() int {
	n := slots(&l.ep)
	switch {
	case l.latency >= quick || l.breaker() != breaker.Closed:
		return n
	case l.latency >= quick/4:
		return 2 * n
	default:
		return 5 * n
	}
}

// afford takes up to n from the endpoint's rate.
func (l *lane) afford(now time.Time, n int) (int, time.Time) {
	r := l.ep.Rate
	if r <= 0 {
		return n, time.Time{}
	}
	burst := max(r/10, 1) // a tenth of a second's worth
	if l.refilled.IsZero() {
		l.tokens = burst
	} else {
		l.tokens = min(l.tokens+now.Sub(l.refilled).Seconds()*r, burst)
	}
	l.refilled = now
	if l.tokens < 1 {
		return 0, now.Add(time.Duration((1 - l.tokens) / r * float64(time.Second)))
	}
	n = min(n, int(l.tokens))
	l.tokens -= float64(n)
	return n, time.Time{}
}

// take gives the lane what was claimed for it, of n that it wanted.
func (l *lane) take(list []*webhook.Delivery, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ep.Rate > 0 {
		l.tokens += float64(n - len(list))
	}
	for _, dl := range list {
		if l.inFlight < slots(&l.ep) {
			l.inFlight++
			l.d.workers.Go(func() { l.work(dl) })
		} else {
			l.buffer = append(l.buffer, dl)
		}
	}
}

// work makes attempts until the lane has nothing left to do.
func (l *lane) work(dl *webhook.Delivery) {
	for {
		l.d.process(l, dl)
		l.mu.Lock()
		if len(l.buffer) == 0 || l.inFlight > slots(&l.ep) {
			l.inFlight--
			l.mu.Unlock()
			l.d.wake()
			return
		}
		dl = l.buffer[0]
		l.buffer = l.buffer[1:]
		low := len(l.buffer) == slots(&l.ep)/2
		l.mu.Unlock()
		if low {
			l.d.wake()
		}
	}
}

// drain empties the buffer, when the dispatcher stops.
func (l *lane) drain() []*webhook.Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.buffer
	l.buffer = nil
	return list
}

// dueAt notes that the lane has work from t on.
func (l *lane) dueAt(t time.Time) {
	l.mu.Lock()
	if l.due.IsZero() || t.Before(l.due) {
		l.due = t
	}
	l.mu.Unlock()
}

// endpointID names the lane's endpoint: it never changes.
func (l *lane) endpointID() string { return l.ep.ID }

// endpoint returns a copy of the configuration.
func (l *lane) endpoint() webhook.Endpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ep
}

// enabled reports whether the endpoint is served: it may have been disabled
// while a claim for it was under way.
func (l *lane) enabled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ep.State == webhook.Enabled
}

// noted is what an attempt changed about its lane.
type noted struct {
	began   bool // a row of failures began
	ended   bool // it ended
	disable string
	failing time.Time
}

// note counts an attempt that was made.
func (l *lane) note(now time.Time, took time.Duration, res *result) (n noted) {
	failed := res.failure.Class != forbear.ClassSuccess
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.latency == 0 {
		l.latency = took
	} else {
		l.latency += (took - l.latency) / 8
	}
	switch {
	case !failed:
		n.ended = !l.ep.FailingSince.IsZero()
		l.failures, l.ep.FailingSince = 0, time.Time{}
	default:
		l.failures++
		if l.ep.FailingSince.IsZero() {
			l.ep.FailingSince, n.began = now, true
		}
		if l.ep.State == webhook.Enabled && l.failures >= 10 && now.Sub(l.ep.FailingSince) >= disableAfter(&l.ep) {
			n.disable = "no success since " + l.ep.FailingSince.UTC().Format(time.RFC3339)
		}
		if res.gone {
			n.disable = "the receiver answered 410 Gone"
		}
		if n.disable != "" {
			l.ep.State = webhook.Disabled
		}
	}
	n.failing = l.ep.FailingSince
	return n
}

// slots returns how many attempts may be in flight.
func slots(e *webhook.Endpoint) int {
	if e.Concurrency <= 0 {
		return defaultSlots
	}
	return e.Concurrency
}

// disableAfter returns how long the endpoint may fail before it is disabled.
func disableAfter(e *webhook.Endpoint) time.Duration {
	if e.DisableAfter <= 0 {
		return defaultDisable
	}
	return e.DisableAfter
}
