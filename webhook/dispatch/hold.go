package dispatch

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook/store"
)

// hold keeps a lane from claiming while its endpoint lacks something: a credential
// (a secret that is not to be had, a token that is refused), a name that resolves
// (see [names]), or the will to take anything (see [endpoint.refused]). It begins
// with the first attempt that finds out, with one alert. Then single deliveries are
// claimed as probes, spaced out, until one finds that it is there. What is due stays
// in the store meanwhile, for other processes too, which may fare better.
//
// It outlives the lane, so that a change of the endpoint begins no second one.
type hold struct {
	kind        string        // one of the Hold constants
	first, last time.Duration // ceilings of the waits between looks

	mu    sync.Mutex
	on    bool
	why   string    // empty: the endpoint was changed, and no probe was made since
	looks int       // that found nothing, since the endpoint was changed
	until time.Time // of the next look, on the monotonic clock
}

// The wait before a look is drawn with full jitter, so that processes that began
// together do not look together. Its ceiling doubles: most secrets come back within
// seconds, with a deployment, and a vault that is down for hours must not be asked by
// every endpoint all the time. A probe of an endpoint that refuses everything costs a
// message, and comes as late as that of one that is down: after 10 minutes on average.
const (
	firstLook, lastLook   = 15 * time.Second, 90 * time.Second // for a credential
	firstName, lastName   = 5 * time.Second, 10 * time.Minute  // for a name
	firstProbe, lastProbe = 10 * time.Second, 2 * slowest      // for a response that accepts
)

// missing records that a look which began at the given time found nothing.
// began says that the hold begins. counts is false for a look that was under
// way when another had found the same: all slots of a lane may find out at once,
// and that is one find.
func (h *hold) missing(why string, look time.Time) (began, counts bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on && look.Before(h.until) {
		return false, false
	}
	if began = !h.on; began {
		h.on, h.looks = true, 0
	}
	ceiling := min(h.first<<min(h.looks, 16), h.last)
	h.looks++
	h.why = why
	h.until = time.Now().Add(wait.Jitter(ceiling))
	return began, true
}

// found records that a look which began at the given time found it there,
// and reports whether that ends the hold. A look that was under way when the
// hold began does not: what one finds and another does not would begin and end
// it all the time.
func (h *hold) found(look time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on || look.Before(h.until) {
		return false
	}
	h.on, h.why = false, ""
	return true
}

// follow holds on the word of another process, which has looked so many times. When it
// is this one's turn already, it keeps it: it may be waiting for a message to look with.
func (h *hold) follow(why string, looks int, next time.Time) (does bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on && !time.Now().Before(h.until) {
		return false
	}
	h.on, h.why, h.looks, h.until = true, why, looks, next
	return true
}

// finding is what others are to know of the hold.
func (h *hold) finding(endpoint string) finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := finding{next: h.until}
	n.Endpoint, n.Kind, n.Why, n.Looks = endpoint, h.kind, h.why, h.looks
	return n
}

// lookAgain makes the next look due at once: the endpoint was changed, or
// it is tested. Until that look nothing is known. It reports whether there is a
// hold.
func (h *hold) lookAgain() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why, h.looks, h.until = "", 0, time.Time{}
	return h.on
}

// holds reports whether there is a hold.
func (h *hold) holds() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on
}

// waits reports whether nothing may be attempted at the given time.
func (h *hold) waits(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on && now.Before(h.until)
}

// next returns when the next look is due, on the monotonic clock.
func (h *hold) next() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// reason returns what is missing, or "" when nothing is, as far as is known.
func (h *hold) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// allow returns how many of n deliveries may be claimed, and otherwise when to
// ask again. busy says that the lane has some already.
func (h *hold) allow(now time.Time, n int, busy bool) (int, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.on:
		return n, time.Time{}
	case now.Before(h.until):
		return 0, h.until
	case busy:
		return 0, time.Time{} // its end asks again
	}
	return min(n, 1), time.Time{}
}

// unready ends an attempt that lacked its credential: nothing is sent without
// . The one that finds out is postponed, and any other given back as it
// was. Both stay due: the lane waits, and may go on at any moment.
func (j *job) unready(r *response) {
	d, why := j.lane.d, r.missing()
	began, counts := j.lane.ep.hold.missing(why, r.look)
	if !counts {
		j.release(0)
		return
	}
	if began {
		j.lane.ep.began(j.lane.ep.hold, "credential", "is held", why)
	}
	j.call.Postponed++
	d.stats.postponed.Add(1)
	j.writeBack(store.Postponed, 0)
}

// ready records that a look found the endpoint's credential. When the endpoint
// was held, its deliveries go on at once.
func (e *endpoint) ready(look time.Time) {
	if e.hold.found(look) {
		e.goOn(e.hold, "endpoint no longer held")
	}
}
