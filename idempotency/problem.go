package idempotency

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/problem"
)

// ProblemBase begins the types of this package's problem documents (RFC 9457).
// A client may retry the one that ends in "/in-progress", with the same key and
// after its Retry-After; no other 409.
const ProblemBase = problem.Namespace + "idempotency/"

// HeaderReplayed marks a response that comes from the store.
const HeaderReplayed = "Idempotent-Replayed"

// refusal is a response of this package's own.
type refusal struct {
	problem.Problem
	wait time.Duration // Retry-After, in whole seconds; 0: none
}

// refuse returns the response of a problem type, without its base.
func refuse(kind, title string, status int, detail string) refusal {
	return refusal{Problem: problem.Problem{Type: ProblemBase + kind, Title: title, Status: status, Detail: detail}}
}

// after adds the advice to come back after wait.
func (p refusal) after(wait time.Duration) refusal {
	p.wait = wait
	return p
}

// The refusals, one for each type. Those of a client that must change something are
// 400, 401, 413 or 422; those that may come again are 408 or say so by Retry-After.
var (
	missingKey = refuse("key-missing", "Idempotency-Key is missing", http.StatusBadRequest,
		"this operation needs an Idempotency-Key header: a new UUID v4 for each operation, the same for all of its attempts")
	invalidKey = refuse("key-invalid", "Idempotency-Key is invalid", http.StatusBadRequest,
		"want exactly one Idempotency-Key of 1 to 64 printable ASCII characters, quoted or not")
	unauthenticated = refuse("unauthenticated", "Not authenticated", http.StatusUnauthorized, "only authenticated callers can use an Idempotency-Key: send credentials")
	tooLarge        = refuse("request-too-large", "Request too large", http.StatusRequestEntityTooLarge, "the body is too large for this operation: send less")
	stalled         = refuse("request-timeout", "Request body too slow", http.StatusRequestTimeout, "the body paused or took too long; nothing was done: try again with the same key")
	overloaded      = refuse("overloaded", "Too many large requests", http.StatusServiceUnavailable, "nothing was done: try again with the same key").after(2 * time.Second)
	unreadable      = refuse("request-unreadable", "Request cut short", http.StatusBadRequest, "the body ended early: send it again with the same key")
	keyReused       = refuse("key-reused", "Idempotency-Key used before", http.StatusUnprocessableEntity,
		"this key belongs to a request with another method, path, query or body: use a new key for a new operation")
	unknownOutcome = refuse("outcome-unknown", "Outcome unknown", http.StatusConflict,
		"an earlier attempt may have taken effect, and its outcome was lost: an operator must resolve this key before it runs again")
	storeDown = refuse("store-unavailable", "Idempotency store unavailable", http.StatusServiceUnavailable,
		"try again with the same key: nothing is done twice").after(2 * time.Second)
)

func notReplayable(a *Response) refusal {
	p := refuse("not-replayable", "Done, but not replayable", http.StatusConflict,
		"an earlier attempt succeeded or failed permanently; its response was not stored: "+a.Tombstone)
	p.OriginalStatus, p.Location = a.Status, a.Header.Get("Location")
	return p
}

// busy advises to come back after wait.
func busy(wait time.Duration) refusal {
	return refuse("in-progress", "Still in progress", http.StatusConflict,
		"an earlier attempt with this key is still running: try again with the same key").after(wait)
}

// correlation returns the id under which a request is logged: the one that what
// is around the handler has given its context, or else the one that it came with;
// "" when there is neither.
func correlation(r *http.Request) string {
	return cmp.Or(edge.CorrelationID(r.Context()), inbound.Correlation(r.Header))
}

// write sends p.
func (p refusal) write(w http.ResponseWriter, r *http.Request) {
	p.Instance = r.URL.EscapedPath()
	p.CorrelationID = correlation(r)
	if p.wait > 0 {
		seconds := int64((p.wait + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	problem.Write(w, p.Problem)
}
