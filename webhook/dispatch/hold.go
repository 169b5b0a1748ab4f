package dispatch

import (
	"log/slog"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Why an endpoint is sent nothing but single messages.
const (
	HoldCredential = "credential" // a secret or a token is not to be had
	HoldUnresolved = "unresolved" // its name does not resolve
	HoldRejecting  = "rejecting"  // it refuses everything
	HoldSuspended  = "suspended"  // its application is: nothing at all is sent
	HoldUnreadable = "unreadable" // what is stored of it is: nothing is sent, or by what it was before
	HoldDisabled   = "disabled"   // by forbear: nothing is sent until a person enables it
)

// kind is one of the four holds of a receiver.
type kind int

const (
	credential kind = iota
	unresolved
	rejecting
	down
	kinds
)

// slowest bounds the wait for a probe: an endpoint that was down for a day is found
// within minutes when it is back.
const slowest = 10 * time.Minute

// kindFacts are what the kinds differ in.
type kindFacts struct {
	name        string        // in the store, and in the API
	first, last time.Duration // the ceilings of the waits between looks
	alert, what string        // its reason, and what follows "endpoint ID"
	over        string        // the line in the log when it is over; "": the breaker says so
}

// kindOf has the facts of each kind. The wait before a look is drawn with full jitter, so
// that processes that began together do not look together (down has no jitter: the breaker
// has). Its ceiling doubles from first to last: most secrets come back within seconds,
// with a deployment, and a vault that is down for hours must not be asked by every endpoint
// all the time. A probe of an endpoint that refuses everything costs a message, and comes
// as late as that of one that is down: after 10 minutes on average.
var kindOf = [kinds]kindFacts{
	credential: {HoldCredential, 15 * time.Second, 90 * time.Second, "credential", "is held", "endpoint no longer held"},
	unresolved: {HoldUnresolved, 5 * time.Second, slowest, "endpoint_unresolved", "is held until its name resolves", "endpoint name resolves again"},
	rejecting:  {HoldRejecting, 10 * time.Second, 2 * slowest, "endpoint_rejecting", "refuses every message: only single messages are sent until it accepts one", "endpoint accepts messages again"},
	down:       {"down", firstWait, slowest, "endpoint_slowed", "keeps failing: attempts are spaced out", ""},
}

// hold keeps a receiver from claiming more than single deliveries, as probes. It begins
// with the first attempt that finds out. What is due stays in the store meanwhile, for
// other processes too, which may reach the endpoint. The receiver's lock guards it.
type hold struct {
	on      bool
	alerted bool      // other processes know
	why     string    // empty: the endpoint was changed, and no probe was made since
	looks   int       // that found nothing, since the endpoint was changed
	until   time.Time // of the next look, on the monotonic clock
}

// missing records that a look which began at the given time found nothing, and reports
// whether the hold begins. counts is false for a look that was under way when another had
// found the same: all slots may find out at once, and that is one find.
func (h *hold) missing(k kind, why string, look time.Time) (began, counts bool) {
	if h.on && look.Before(h.until) {
		return false, false
	}
	if began = !h.on; began {
		h.on, h.looks, h.alerted = true, 0, false
	}
	ceiling := min(kindOf[k].first<<min(h.looks, 16), kindOf[k].last)
	h.looks++
	h.why = why
	h.until = time.Now().Add(wait.Jitter(ceiling))
	return began, true
}

// found records that a look which began at the given time found the endpoint well, and
// reports whether that ends the hold. A look that was under way when the hold began does
// not: what one finds and another does not would begin and end it all the time.
func (h *hold) found(look time.Time) bool {
	if !h.on || look.Before(h.until) {
		return false
	}
	h.on, h.why = false, ""
	return true
}

// follow holds on the word of another process, which has looked so many times. When it
// is this one's turn already, it keeps it: it may be waiting for a message to look with.
func (h *hold) follow(why string, looks int, next time.Time) bool {
	if h.on && !time.Now().Before(h.until) {
		return false
	}
	*h = hold{on: true, alerted: true, why: why, looks: looks, until: next}
	return true
}

// lookAgain makes the next look due at once. Until that look nothing is known.
func (h *hold) lookAgain() { h.why, h.looks, h.until = "", 0, time.Time{} }

// waits reports whether the next look is not due at the given time.
func (h *hold) waits(now time.Time) bool { return h.on && now.Before(h.until) }

// What follows are the receiver's holds; its lock is held.

// missing records that a look of a kind found nothing, and reports whether that counts. The
// alert is raised, and other processes learn of it, when the hold begins; for a name, when
// a lookup has failed as well: one failure is soon over, mostly.
func (r *receiver) missing(k kind, why string, look time.Time) (counts bool) {
	h := &r.holds[k]
	began, counts := h.missing(k, why, look)
	switch {
	case !counts || began && k == unresolved:
	case !h.alerted:
		h.alerted = true
		if k == unresolved {
			why = r.endpoint().host() + ": " + why
		}
		r.began(k, why)
	case k != credential:
		r.d.find(r.finding(k))
	}
	return counts
}

// found records that a look of a kind found the endpoint well. When that ends the hold, the
// deliveries go on at once.
func (r *receiver) found(k kind, look time.Time) {
	if !r.holds[k].found(look) {
		return
	}
	r.later(func() { r.d.log.Info(kindOf[k].over, slog.String("endpoint", r.id)) })
	r.d.over(r.id, kindOf[k].name)
	r.dueAtLocked(time.Now())
	r.d.wake()
}

// began logs that a hold has begun, and makes it known with its alert.
func (r *receiver) began(k kind, why string) {
	n := r.finding(k)
	if k == credential {
		n.Looks = 0 // another process may have the credential
	}
	detail := "endpoint " + r.id + " " + kindOf[k].what
	if k != down { // of which the breaker has logged that it opened
		detail += ": " + why
		r.later(func() {
			r.d.log.Error("endpoint held", slog.String("endpoint", r.id), slog.String("reason", kindOf[k].alert), slog.String("cause", why))
		})
	}
	n.Begins, n.Alert = true, queue.Alert{Queue: webhook.QueueOf(r.id), Reason: kindOf[k].alert, Detail: detail}
	r.d.find(n)
}

// finding is what other processes need to know about a hold.
func (r *receiver) finding(k kind) finding {
	h := &r.holds[k]
	return finding{next: h.until, HoldWrite: store.HoldWrite{Hold: store.Hold{Endpoint: r.id, Kind: kindOf[k].name, Why: h.why, Looks: h.looks}}}
}

// lookAgain makes whatever holds the endpoint be looked at anew, at once: it was changed or
// enabled, or is tested. A breaker's probe is not.
func (r *receiver) lookAgain() {
	for k := range down {
		r.holds[k].lookAgain()
	}
}

// holding returns the hold that keeps the endpoint's messages, but for a breaker, and
// whether there is one.
func (r *receiver) holding() (kind, bool) {
	for k := range down {
		if r.holds[k].on {
			return k, true
		}
	}
	return 0, false
}

// held says what keeps the endpoint's messages, for people; "" when nothing does, as far
// as is known.
func (r *receiver) held() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, on := r.holding()
	why := r.holds[k].why
	switch {
	case !on || !r.enabledLocked():
		return ""
	case why == "" || k == credential:
		return why
	case k == unresolved:
		return "its name does not resolve: " + r.endpoint().host() + ": " + why
	}
	return "it refuses every message: " + why
}
