package dispatch

import (
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook/store"
)

// A response that is final ends its message. An endpoint that gives such
// responses to everything, a 404 since its path has moved or a 403 since its key is
// gone, would thus end all that is sent to it within a minute. So a row of them
// without a success holds the endpoint: the next messages wait inside their 24 hours,
// and single ones are sent as probes.
//
// Statuses that may be about the message count a fifth: among messages that are
// accepted, one type that the receiver refuses must not slow the others.
//
// Half of that in two processes is as much.
const (
	manyRefusals = 100 // of weight
	refusal      = 5
)

// suspected is the kind of what is shared beside the holds: half of the refusals that make
// a hold.
const suspected = "suspected"

// judgeRefusal learns whether the endpoint refuses all that it is sent. A probe that fails
// in any manner has found no success. The caller holds mu.
func (r *receiver) judgeRefusal(a *attempt) {
	before := r.refusals
	switch {
	case a.delivered():
		r.accepted(a.look)
		return
	case a.final && ofMessage(a.record.Status):
		r.refusals++
	case a.final:
		r.refusals += refusal
	}
	half := r.refusals >= manyRefusals/2
	if half && before < manyRefusals/2 {
		r.d.find(finding{HoldWrite: store.HoldWrite{Hold: store.Hold{Endpoint: r.id, Kind: suspected}, Begins: true}})
	}
	many := r.refusals >= manyRefusals || half && r.suspected
	if a.final && many || r.holds[rejecting].on {
		r.missing(rejecting, a.failure.Type, a.look)
	}
}

// accepted records that the endpoint has taken a message, which was sent at the given time.
// The caller holds mu.
func (r *receiver) accepted(look time.Time) {
	if r.suspected || r.refusals >= manyRefusals/2 {
		r.d.over(r.id, suspected)
	}
	r.refusals, r.suspected = 0, false
	r.found(rejecting, look)
}

// isFinal reports whether a response was the end of its message, and not the last of
// several attempts. That a message could not be encoded says nothing of the endpoint;
// one that is gone is disabled.
func isFinal(a *attempt, dec forbear.Decision) bool {
	switch dec.Reason {
	case reason.Terminal, reason.Certificate, reason.Unauthorized, reason.Unknown:
		return a.record.Status != http.StatusGone && a.failure.Type != unsendable
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
