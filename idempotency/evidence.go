package idempotency

import (
	"maps"
	"slices"
	"time"
)

// Evidence is a [Record] as operators see it. Of a response it has the status and the names
// of its headers: the rest belongs to the caller, and an operator needs none of it to decide.
//
// The field names are a format that scripts read.
type Evidence struct {
	Scope     string    `json:"scope"`
	Key       string    `json:"key"` // its digest
	State     State     `json:"state"`
	Operation string    `json:"operation"`
	Attempt   int       `json:"attempt"`
	Fence     int64     `json:"fence"`
	Created   time.Time `json:"created"`
	LeaseEnd  time.Time `json:"lease_end,omitzero"`
	Completed time.Time `json:"completed,omitzero"`
	Expires   time.Time `json:"expires"`
	Status    int       `json:"status,omitempty"`
	Headers   []string  `json:"headers,omitempty"`
	Note      string    `json:"note,omitempty"`
}

// Evidence is what operators see of r.
func (r *Record) Evidence() Evidence {
	e := Evidence{
		Scope: r.ID.Scope, Key: r.ID.Key, State: r.State, Operation: r.Operation, Attempt: r.Attempt, Fence: r.Fence,
		Created: r.Created, LeaseEnd: r.LeaseEnd, Completed: r.Completed, Expires: r.Expires, Note: r.Note,
	}
	// Only completed records have a response.
	if r.Response != nil {
		e.Status, e.Headers = r.Response.Status, slices.Sorted(maps.Keys(r.Response.Header))
	}
	return e
}
