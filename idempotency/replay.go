package idempotency

import (
	"errors"
	"fmt"
	"maps"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/problem"
)

// respond serves a request that is not to run, as the store's verdict says.
func (x *keyedRequest) respond(v Verdict) {
	switch v.Outcome {
	case Replay:
		x.replay(v.Record.Response)
	case Mismatch:
		x.refuse(keyReused, Reused)
	case Unknown:
		x.refuse(unknownOutcome, OutcomeHeld)
	case InProgress:
		x.refuse(busy(x.h.retryAfter(v.Record.Operation, x.waited, v.LeaseLeft)), Busy)
	default:
		x.storeFailed(fmt.Errorf("store gave no verdict: outcome %d", v.Outcome))
	}
}

// replay sends the stored response.
func (x *keyedRequest) replay(a *Response) {
	if a == nil {
		x.storeFailed(errors.New("completed record has no response"))
		return
	}
	if a.Tombstone != "" {
		x.refuse(notReplayable(a), NotReplayable)
		return
	}
	x.h.Observe(Event{Result: Replayed, Waited: x.waited})
	head := x.w.Header()
	maps.Copy(head, a.Header)
	if _, typed := head["Content-Type"]; !typed {
		head["Content-Type"] = nil // or the server would guess one
	}
	head.Set(x.h.ReplayHeader, "true")
	if id := edge.CorrelationID(x.r.Context()); id != "" {
		head.Set(problem.HeaderCorrelation, id) // of this request, not of the one whose response it is
	}
	x.w.WriteHeader(a.Status)
	_, _ = x.w.Write(a.Body)
}
