package idempotency

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ProblemBase begins the types of this package's problem documents (RFC 9457).
// A client may retry the one that ends in "/in-progress", with the same key and
// after its Retry-After; no other 409.
const ProblemBase = "urn:forbear:problem:idempotency/"

// HeaderReplayed marks an answer that comes from the store.
const HeaderReplayed = "Idempotent-Replayed"

type problem struct {
	Type          string `json:"type"`
	Title         string `json:"title"`
	Status        int    `json:"status"`
	Detail        string `json:"detail"`
	Instance      string `json:"instance"`
	CorrelationID string `json:"correlation_id,omitempty"`

	// Of the stored answer, where it cannot be replayed.
	OriginalStatus int    `json:"original_status,omitempty"`
	Location       string `json:"location,omitempty"`

	retryAfter time.Duration
}

func missingKey() problem {
	return problem{
		Type: "key-missing", Title: "Idempotency-Key is missing", Status: http.StatusBadRequest,
		Detail: "this operation requires an Idempotency-Key header: a fresh UUID v4 for each operation, the same in all of its attempts",
	}
}

func invalidKey() problem {
	return problem{
		Type: "key-invalid", Title: "Idempotency-Key is invalid", Status: http.StatusBadRequest,
		Detail: "want exactly one Idempotency-Key of 1 to 64 printable ASCII characters, quoted or not",
	}
}

func unauthenticated() problem {
	return problem{
		Type: "unauthenticated", Title: "Not authenticated", Status: http.StatusUnauthorized,
		Detail: "keys belong to authenticated callers",
	}
}

func tooLarge() problem {
	return problem{
		Type: "request-too-large", Title: "Request too large", Status: http.StatusRequestEntityTooLarge,
		Detail: "the body is larger than this operation takes",
	}
}

func unreadable() problem {
	return problem{
		Type: "request-unreadable", Title: "Request cut short", Status: http.StatusBadRequest,
		Detail: "the body could not be read to its end",
	}
}

func keyReused() problem {
	return problem{
		Type: "key-reused", Title: "Idempotency-Key used before", Status: http.StatusUnprocessableEntity,
		Detail: "this key belongs to another request: method, path, query or body differ",
	}
}

func busy(wait time.Duration) problem {
	return problem{
		Type: "in-progress", Title: "Still in progress", Status: http.StatusConflict,
		Detail:     "an earlier attempt with this key is still running: try again with the same key",
		retryAfter: min(wait, maxRetryAfter),
	}
}

func unknownOutcome() problem {
	return problem{
		Type: "outcome-unknown", Title: "Outcome unknown", Status: http.StatusConflict,
		Detail: "an earlier attempt may have taken effect and its outcome was lost: it is not repeated until an operator has settled it",
	}
}

func notReplayable(a *Answer) problem {
	return problem{
		Type: "not-replayable", Title: "Done, but not replayable", Status: http.StatusConflict,
		Detail:         "an earlier attempt succeeded or failed for good; its answer was not stored: " + a.Tombstone,
		OriginalStatus: a.Status, Location: a.Header.Get("Location"),
	}
}

func storeDown() problem {
	return problem{
		Type: "store-unavailable", Title: "Idempotency store unavailable", Status: http.StatusServiceUnavailable,
		Detail: "nothing was done: try again with the same key", retryAfter: 2 * time.Second,
	}
}

// maxRetryAfter bounds the advice for a run under way: it may well end before
// its lease.
const maxRetryAfter = 5 * time.Second

// write answers with p.
func (p problem) write(w http.ResponseWriter, r *http.Request) {
	p.Type = ProblemBase + p.Type
	p.Instance = r.URL.EscapedPath()
	if id := r.Header.Get("X-Correlation-ID"); id != "" && CheckKey(id) == nil {
		p.CorrelationID = id
		w.Header().Set("X-Correlation-ID", id)
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = nil // strings and numbers always marshal
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if p.Status == http.StatusConflict && strings.HasSuffix(p.Type, "/in-progress") || p.retryAfter > 0 {
		seconds := max(int64((p.retryAfter+time.Second-1)/time.Second), 1)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
