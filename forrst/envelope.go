package forrst

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Protocol is the first member of every envelope, by which it is recognised.
type Protocol struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Current is the protocol that this package writes.
var Current = Protocol{Name: "forrst", Version: "0.1.0"}

// Call is what a request asks for: a function, its version and its
// arguments.
type Call struct {
	Function  string `json:"function"`
	Version   string `json:"version,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
}

// Request is a request envelope. [NewTransport] reads more than this type
// holds, and keeps all of it.
type Request struct {
	Protocol   Protocol        `json:"protocol"`
	ID         string          `json:"id"`
	Call       Call            `json:"call"`
	Context    json.RawMessage `json:"context,omitempty"`
	Extensions []Extension     `json:"extensions,omitempty"`
}

// Error is one error of a response. The boolean retryable of older servers is
// read and never written.
type Error struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Source  json.RawMessage `json:"source,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`

	retryable, flagged bool
}

// Retryable returns the older boolean; ok is false when the server sent none.
func (e *Error) Retryable() (retryable, ok bool) { return e.retryable, e.flagged }

// Response is a response envelope: it has either a result or errors.
type Response struct {
	Protocol   Protocol        `json:"protocol"`
	ID         *string         `json:"id"` // nil only when the request could not be read
	Result     json.RawMessage `json:"result"`
	Errors     []Error         `json:"errors,omitempty"`
	Extensions []Extension     `json:"extensions,omitempty"`
	Meta       json.RawMessage `json:"meta,omitempty"`
}

var (
	// ErrForeign says that a message is not a Forrst envelope, so that
	// only HTTP's rules can judge it.
	ErrForeign = errors.New("not a forrst envelope")
	// ErrMalformed says that a Forrst envelope breaks the protocol.
	ErrMalformed = errors.New("malformed forrst envelope")
)

// ParseResponse reads a response envelope. Unknown members are passed over,
// as the protocol demands of readers. The error is [ErrForeign] or
// [ErrMalformed], with the reason.
func ParseResponse(body []byte) (*Response, error) {
	m, ok := members(body)
	if !ok || !isForrst(m["protocol"]) {
		return nil, ErrForeign
	}
	r := &Response{Protocol: Current, Result: m["result"], Meta: m["meta"]}
	_ = json.Unmarshal(m["protocol"], &r.Protocol) // the string form keeps the current one
	id, ok := m["id"]
	if !ok || json.Unmarshal(id, &r.ID) != nil || r.ID != nil && *r.ID == "" {
		return nil, fmt.Errorf("%w: id is not a string", ErrMalformed)
	}
	if err := r.readErrors(m["errors"]); err != nil {
		return nil, err
	}
	_, hasResult := m["result"]
	switch null := isNull(r.Result); {
	case len(r.Errors) > 0 && !null:
		return nil, fmt.Errorf("%w: both result and errors", ErrMalformed)
	case len(r.Errors) == 0 && !hasResult:
		return nil, fmt.Errorf("%w: neither result nor errors", ErrMalformed)
	}
	r.Extensions = readExtensions(m["extensions"])
	return r, nil
}

// readErrors reads the errors of a response. An empty list is malformed: it
// would be a failure without a reason.
func (r *Response) readErrors(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return fmt.Errorf("%w: errors is not a list, or is empty", ErrMalformed)
	}
	for _, item := range list {
		m, ok := members(item)
		if !ok {
			return fmt.Errorf("%w: an error is not an object", ErrMalformed)
		}
		e := Error{Source: m["source"], Details: m["details"]}
		if json.Unmarshal(m["code"], &e.Code) != nil || e.Code == "" {
			return fmt.Errorf("%w: an error has no code", ErrMalformed)
		}
		_ = json.Unmarshal(m["message"], &e.Message) // for people only
		e.retryable, e.flagged = boolean(m["retryable"])
		r.Errors = append(r.Errors, e)
	}
	return nil
}

// readExtensions reads what it can. A broken entry counts as absent: an
// extension that is not understood must not make a response unreadable.
func readExtensions(raw json.RawMessage) []Extension {
	var list []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var found []Extension
	for _, item := range list {
		m, ok := members(item)
		var urn string
		if !ok || json.Unmarshal(m["urn"], &urn) != nil {
			continue
		}
		found = append(found, Extension{URN: urn, Options: m["options"], Data: m["data"]})
	}
	return found
}

// isForrst accepts the protocol as the object that is sent, and as the string
// "forrst/0.1" that some of the protocol's tables show.
func isForrst(raw json.RawMessage) bool {
	var s string
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &s) == nil && strings.HasPrefix(s, "forrst/")
	}
	m, ok := members(raw)
	return ok && json.Unmarshal(m["name"], &s) == nil && s == "forrst"
}

// isNull reports whether a member is absent or null. Servers send either.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}
