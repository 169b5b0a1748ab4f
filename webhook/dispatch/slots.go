package dispatch

import (
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook/store"
)

// slots are what a receiver has claimed of its deliveries. It takes no more than it can
// send, so that what is due for an endpoint that hangs stays in the store and delays no
// other endpoint. The receiver's lock guards them.
type slots struct {
	inFlight int         // slots that are taken
	buffer   []*job      // claimed ahead, without a slot yet
	due      time.Time   // when there is work, as far as is known; zero: unknown
	size     int         // of the bodies that were claimed, in bytes, smoothed
	tokens   float64     // of the endpoint's rate
	refilled time.Time   // when tokens was counted
	sending  int         // attempts under way
	waiting  int         // retries that wait in their slot to be earned (earned.go)
	alarm    *time.Timer // asks again when the time has come: see askAt
	// restrained is until when nothing is claimed, since retries are refused.
	restrained time.Time
}

// quick is the latency up to which deliveries are taken ahead. Behind slower attempts
// their leases would run out in the buffer.
const quick = 200 * time.Millisecond

// maxAhead bounds the bodies that are taken ahead, in bytes.
const maxAhead = 8 << 20

// want returns how many deliveries may be claimed now, and otherwise when to ask again;
// zero means: when something happens. The rate is taken along, and [receiver.take] gives
// back what was not claimed.
func (r *receiver) want(now time.Time) (n int, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.enabledLocked() || r.due.IsZero():
		return 0, time.Time{}
	case r.due.After(now):
		return 0, r.due
	case r.restrained.After(now):
		return 0, r.restrained
	}
	// Not for a few: a claim costs the store the same for one as for fifty.
	limit := r.depth()
	n = limit - r.inFlight - len(r.buffer)
	if n < max(limit/4, 1) && r.inFlight > 0 {
		return 0, time.Time{} // an attempt that ends asks again
	}
	if n, next = r.may(now, n); n <= 0 {
		return 0, next
	}
	if n, next = r.afford(now, n); n > 0 {
		r.due = time.Time{} // what is learned from now on counts
	}
	return n, next
}

// busy reports whether any delivery is claimed. The caller holds mu.
func (r *receiver) busy() bool { return r.inFlight+len(r.buffer) > 0 }

// depth returns how many deliveries may be claimed at a time: those in flight, and ahead
// of them as many as keep the slots busy while the next are being claimed. The quicker the
// receiver, the more, and of large messages fewer. The caller holds mu.
func (r *receiver) depth() int {
	n := r.endpoint().slots()
	ahead := 4 * n
	switch {
	case r.latency >= quick || r.breaker() != breaker.Closed:
		return n
	case r.latency >= quick/4:
		ahead = n
	}
	if r.size > 0 {
		ahead = min(ahead, maxAhead/r.size)
	}
	return n + ahead
}

// afford takes up to n from this process's part of the endpoint's rate: a token
// bucket that holds a tenth of a second's worth. The caller holds mu.
func (r *receiver) afford(now time.Time, n int) (int, time.Time) {
	rate := r.endpoint().conf.Rate
	if rate <= 0 {
		return n, time.Time{}
	}
	part, next := r.d.members.Load().part(now)
	if part == 0 {
		return 0, next
	}
	rate *= part
	burst := max(rate/10, 1)
	if r.refilled.IsZero() {
		r.tokens = burst
	} else {
		r.tokens = min(r.tokens+now.Sub(r.refilled).Seconds()*rate, burst)
	}
	r.refilled = now
	if r.tokens < 1 {
		// Not at once: what is missing may be too little for a nanosecond.
		return 0, now.Add(max(time.Duration((1-r.tokens)/rate*float64(time.Second)), time.Microsecond))
	}
	n = min(n, int(r.tokens))
	r.tokens -= float64(n)
	return n, time.Time{}
}

// take begins what was claimed, of n that were wanted. What was not there goes back to the
// rate.
func (r *receiver) take(list []*store.Delivery, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ep := r.endpoint()
	if ep.conf.Rate > 0 {
		r.tokens += float64(n - len(list))
	}
	for _, dl := range list {
		r.size += (len(dl.Message.Body) - r.size) / 8
		j := &job{to: r, delivery: dl}
		if r.inFlight < ep.slots() {
			r.inFlight++
			r.d.workers.Go(func() { r.work(j) })
		} else {
			r.buffer = append(r.buffer, j)
		}
	}
}

// work does jobs in one slot until none is left. It wakes the main loop when the buffer is
// half empty, so that the next claim is there before it is quite empty, and when the slot
// becomes free.
func (r *receiver) work(j *job) {
	for j != nil {
		j.process()
		var ask bool
		if j, ask = r.next(); ask {
			r.d.ask(r.id)
		}
	}
}

// next returns the next job of a slot, or frees that, and reports whether more may be
// claimed.
func (r *receiver) next() (j *job, ask bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.buffer) == 0 {
		r.inFlight--
		return nil, true
	}
	j, r.buffer = r.buffer[0], r.buffer[1:]
	return j, len(r.buffer) == r.endpoint().slots()/2
}

// drain empties the buffer, when the dispatcher stops: what waits for a slot goes
// back to the store at once, and not after the attempts under way.
func (r *receiver) drain() []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.buffer
	r.buffer = nil
	return list
}

// dueAt records that there is work from t on. The earliest such time counts, until a claim
// was asked for.
func (r *receiver) dueAt(t time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dueAtLocked(t)
}

func (r *receiver) dueAtLocked(t time.Time) {
	if r.due.IsZero() || t.Before(r.due) {
		r.due = t
	}
	r.d.agenda.ask(r.id)
}

// begin counts an attempt that is sent, until learn hears of it.
func (r *receiver) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sending++
}
