// Package problem writes the errors of forbear's own HTTP responses as problem
// documents (RFC 9457).
package problem

import (
	"encoding/json"
	"net/http"
)

// Namespace is what the types of forbear's problems begin with.
const Namespace = "urn:forbear:problem:"

// HeaderCorrelation echoes the correlation id of the request.
const HeaderCorrelation = "X-Correlation-ID"

// Problem is one response. Instance is the request's path, never its query. Optional
// fields are left out when they are empty. None may hold a body, a token or a query
// string: clients write problems to their logs.
type Problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`

	CorrelationID string `json:"correlation_id,omitempty"`
	Dependency    string `json:"dependency,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Rule          string `json:"rule,omitempty"`
	ErrorType     string `json:"error_type,omitempty"`
	Attempts      int    `json:"attempts,omitempty"`
	// Outcome says of a forwarded request whether it may have been carried out.
	Outcome Outcome `json:"outcome,omitempty"`
	// Help is the address of the page about Reason.
	Help string `json:"help,omitempty"`

	// Of an earlier response that cannot be repeated.
	OriginalStatus int    `json:"original_status,omitempty"`
	Location       string `json:"location,omitempty"`
}

// Outcome is what is known of a request that has no response of its own.
type Outcome string

const (
	Unsent  Outcome = "unsent"  // certainly not carried out: the server has got nothing of it
	Unknown Outcome = "unknown" // it may have been carried out
)

// Write responds with p. It sets no-store, since a cache that kept an error would
// serve it long after the cause is gone.
func Write(w http.ResponseWriter, p Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		w.WriteHeader(p.Status) // strings and numbers always marshal
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if p.CorrelationID != "" {
		h.Set(HeaderCorrelation, p.CorrelationID)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}
