package dispatch

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// A response that is final ends its message. An endpoint that gives such
// responses to everything, a 404 since its path has moved or a 403 since its key is
// gone, would thus end all that is sent to it within a minute. So a row of them
// without a success slows the endpoint as an open breaker does: the next messages
// wait inside their 24 hours, and single ones are sent as probes.
//
// Statuses that may be about the message count a fifth: among messages that are
// accepted, one type that the receiver refuses must not slow the others.
//
// Half of that in two processes is as much.
const (
	manyRefusals = 100 // of weight
	refusal      = 5
)

// refused learns from what followed a failed attempt: whether the endpoint refuses
// all that it is sent. A probe that fails in any manner has found no success.
func (e *endpoint) refused(r *response, dec forbear.Decision) {
	final := isFinal(r, dec)
	e.mu.Lock()
	before := e.refusals
	switch {
	case final && ofMessage(r.status):
		e.refusals++
	case final:
		e.refusals += refusal
	}
	half := e.refusals >= manyRefusals/2
	many := e.refusals >= manyRefusals || half && e.suspected
	e.mu.Unlock()
	if half && before < manyRefusals/2 {
		e.d.find(finding{HoldWrite: store.HoldWrite{Hold: store.Hold{Endpoint: e.id(), Kind: heldSuspect}, Begins: true}})
	}
	if !(final && many) && !e.rejects.holds() {
		return
	}
	switch began, counts := e.rejects.missing(r.failure.Type, r.look); {
	case began:
		e.began(e.rejects, "endpoint_rejecting", "refuses everything, and is sent single messages until it takes one", r.failure.Type)
	case counts:
		e.d.find(e.rejects.finding(e.id()))
	}
}

// suspect records whether another process has seen half of that many refusals.
func (e *endpoint) suspect(does bool) {
	e.mu.Lock()
	e.suspected = does
	e.mu.Unlock()
}

// isFinal reports whether a response was the end of its message, and not the last of
// several attempts. That a message could not be encoded says nothing of the endpoint;
// one that is gone is disabled.
func isFinal(r *response, dec forbear.Decision) bool {
	switch dec.Reason {
	case forbear.ReasonTerminal, forbear.ReasonCertificate, forbear.ReasonUnauthorized, forbear.ReasonUnknown:
		return r.status != http.StatusGone && r.failure.Type != unsendable
	default:
		return false
	}
}

// ofMessage reports whether a status may be about the message, and not about the
// endpoint.
func ofMessage(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

// accepted records that an attempt which began at the given time was accepted.
func (e *endpoint) accepted(look time.Time) {
	e.mu.Lock()
	suspected := e.suspected || e.refusals >= manyRefusals/2
	e.refusals, e.suspected = 0, false
	e.mu.Unlock()
	if suspected {
		e.d.over(e.id(), heldSuspect)
	}
	if e.rejects.found(look) {
		e.goOn(e.rejects, "endpoint takes messages again")
	}
}

// waits reports whether nothing may be attempted at the given time.
func (e *endpoint) waits(now time.Time) bool {
	return e.hold.waits(now) || e.names.waits(now) || e.rejects.waits(now)
}

// holding returns the hold that keeps the endpoint's messages, by its name, or nil.
func (e *endpoint) holding() (string, *hold) {
	switch {
	case e.hold.holds():
		return HoldCredential, e.hold
	case e.names.holds():
		return HoldUnresolved, e.names.hold
	case e.rejects.holds():
		return HoldRejecting, e.rejects
	}
	return "", nil
}

// held says what keeps the endpoint's messages, for people; "" when nothing does, as far
// as is known.
func (e *endpoint) held() string {
	name, h := e.holding()
	if h == nil {
		return ""
	}
	switch why := h.reason(); {
	case why == "" || name == HoldCredential:
		return why
	case name == HoldUnresolved:
		return "its name does not resolve: " + e.plain.URL.Hostname() + ": " + why
	default:
		return "it refuses everything: " + why
	}
}

// lookAgain makes whatever holds the endpoint be looked at anew, at once: it was
// changed or enabled, or is tested. It reports whether it is held for a credential.
func (e *endpoint) lookAgain() bool {
	e.names.lookAgain()
	e.rejects.lookAgain()
	return e.hold.lookAgain()
}

// began logs that a hold has begun, and makes it known with its alert.
func (e *endpoint) began(h *hold, reason, what, why string) {
	id := e.id()
	e.d.log.Error("endpoint held", slog.String("endpoint", id), slog.String("reason", reason), slog.String("cause", why))
	n := h.finding(id)
	if h == e.hold {
		n.Looks = 0 // another process may have the credential
	}
	n.Begins, n.Alert = true, deadletter.Alert{Queue: webhook.QueueOf(id), Reason: reason, Detail: "endpoint " + id + " " + what + ": " + why}
	e.d.find(n)
}

// goOn makes the deliveries of an endpoint go on at once, when a hold has ended.
func (e *endpoint) goOn(h *hold, what string) {
	e.d.log.Info(what, slog.String("endpoint", e.id()))
	e.d.over(e.id(), h.kind)
	e.d.dueAt(e.id(), time.Now()) // by its id: another lane may serve it by now
	e.d.wake()
}
