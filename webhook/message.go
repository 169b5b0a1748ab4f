package webhook

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// Message is what is to be delivered. Endpoints and Body are required.
type Message struct {
	// ID and an endpoint identify the message for good: the id is sent as
	// webhook-id in every attempt. The same message again is a duplicate, and
	// another one with the same id and endpoint is refused with [ErrConflict].
	// An ID is made when it is empty.
	ID        string   `json:"id"`
	Endpoints []string `json:"endpoints"`
	Type      string   `json:"type,omitempty"`
	Source    string   `json:"source,omitempty"`
	Subject   string   `json:"subject,omitempty"`
	// Key orders the messages to an ordered endpoint.
	Key string `json:"key,omitempty"`
	// IdempotencyKey is sent as Idempotency-Key in every attempt; ID is, when
	// it is empty and fits.
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	CorrelationID  string   `json:"correlation_id,omitempty"`
	ContentType    string   `json:"content_type,omitempty"` // default application/json
	Headers        []Header `json:"headers,omitempty"`
	// NotBefore delays the first attempt.
	NotBefore time.Time `json:"not_before,omitzero"`
	Created   time.Time `json:"created_at,omitzero"`
	Body      []byte    `json:"-"`
}

// Accepted is the answer to one message.
type Accepted struct {
	ID string `json:"id"`
	// Duplicate says that this message was accepted before at each of its
	// endpoints; nothing was added.
	Duplicate bool `json:"duplicate,omitempty"`
}

// Delivery is one message on its way to one endpoint, as a worker holds it.
type Delivery struct {
	ID      int64
	Fence   int64 // what a write must carry to be accepted
	Claims  int   // how often it was taken up, this time included
	Message Message

	Endpoint string
	OrderKey string // set when the endpoint keeps the key's order
	Due      time.Time
	Start    time.Time // R-3's 24 hours count from here
	Progress Progress
	// Letter is the dead letter that this delivery redrives, or "".
	Letter string
	// LeaseEnd is when others may take the delivery, on this process's
	// monotonic clock.
	LeaseEnd time.Time
}

// Progress is what a delivery carries from one attempt to the next.
type Progress struct {
	// Attempts counts the attempts that were made.
	Attempts int           `json:"attempts,omitempty"`
	State    forbear.State `json:"state,omitzero"`
	// Pending is a failure whose decision was put off, because the budget was
	// spent or the breaker open. It is asked again when the delivery is due.
	Pending   *Pending `json:"pending,omitempty"`
	Postponed int      `json:"postponed,omitempty"`
	// Last is the error_type of the latest attempt.
	Last string `json:"last,omitempty"`
}

// Pending is a failed attempt that waits for its decision.
type Pending struct {
	Class  forbear.Class `json:"class"`
	Type   string        `json:"type"`
	Status int           `json:"status,omitempty"`
	At     time.Time     `json:"at"`
	// Until is when the server's own wait ends.
	Until  time.Time `json:"until,omitzero"`
	Detail string    `json:"detail,omitempty"`
	// Refused counts how often the budget has refused the retry.
	Refused int `json:"refused,omitempty"`
}

// left returns what is left of a wait that counts from the failure. The
// server's own wait is never shortened; a clock that was set back ends
// the rest.
func (p *Pending) left(wait time.Duration, now time.Time) time.Duration {
	rest := p.At.Add(wait).Sub(now)
	if p.At.After(now) {
		rest = 0
	}
	if !p.Until.IsZero() {
		rest = max(rest, p.Until.Sub(now))
	}
	return max(rest, 0)
}

// Attempt is the record of one attempt.
type Attempt = deadletter.Attempt

// ErrInvalid is what errors about messages and endpoints match.
var ErrInvalid = errors.New("invalid")

// check refuses what could never be delivered.
func (m *Message) check() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w message: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if m.ID != "" && !visible(m.ID, 128) {
		add("id is not 1 to 128 visible characters")
	}
	if len(m.Endpoints) == 0 || len(m.Endpoints) > 1000 {
		add("%d endpoints, want 1 to 1000", len(m.Endpoints))
	}
	if len(m.Body) > maxMessageSize {
		add("body of %d bytes, at most %d", len(m.Body), maxMessageSize)
	}
	if m.IdempotencyKey != "" && !visible(m.IdempotencyKey, forbear.MaxKeyLen) {
		add("idempotency_key is not 1 to %d visible characters (R-6)", forbear.MaxKeyLen)
	}
	for name, v := range map[string]string{"type": m.Type, "source": m.Source, "subject": m.Subject, "key": m.Key, "correlation_id": m.CorrelationID, "content_type": m.ContentType} {
		if len(v) > 256 || !printable(v) {
			add("%s is longer than 256 bytes, no UTF-8 or has control characters", name)
		}
	}
	if year := m.NotBefore.UTC().Year(); year < 1 || year > 9999 {
		add("not_before is in the year %d", year) // RFC 3339 ends with 9999
	}
	if err := checkHeaders(m.Headers); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ownHeaders are headers that a message or an endpoint may not set: the
// transport's, forbear's and those that carry credentials.
var ownHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "Host": true, "Content-Length": true,
	"Transfer-Encoding": true, "Connection": true, "Upgrade": true, "Te": true, "Trailer": true, "Keep-Alive": true,
	"Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true, "X-Retry-Attempt": true,
	"Idempotency-Key": true, "Content-Type": true, "User-Agent": true,
}

func checkHeaders(headers []Header) error {
	var errs []error
	if len(headers) > 64 {
		errs = append(errs, fmt.Errorf("%w headers: %d lines, at most 64", ErrInvalid, len(headers)))
	}
	for _, h := range headers {
		switch name := textproto.CanonicalMIMEHeaderKey(h.Name); {
		case !token(h.Name):
			errs = append(errs, fmt.Errorf("%w header name %.40q", ErrInvalid, h.Name))
		case ownHeaders[name]:
			errs = append(errs, fmt.Errorf("%w header %s: set by forbear alone", ErrInvalid, name))
		case len(h.Value) > 4096 || !printable(h.Value):
			errs = append(errs, fmt.Errorf("%w header %s: its value is longer than 4096 bytes, no UTF-8 or has control characters", ErrInvalid, name))
		}
	}
	return errors.Join(errs...)
}

// printable reports whether s survives the way through a store, a header and
// back: UTF-8 without control characters.
func printable(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, control) }

func control(r rune) bool { return r < ' ' || r == 0x7f }

func visible(s string, limit int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

// token reports whether s is a token of RFC 9110 section 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// Queue is the name of the webhooks' dead-letter queue.
const Queue = "webhooks"

// FromLetter returns the message that a letter of the webhooks' queue was, for
// its one endpoint.
func FromLetter(l deadletter.Letter) Message {
	return Message{
		ID: l.EventID, Endpoints: []string{l.Destination}, Type: l.Type, Source: l.Source, Subject: l.Subject, Key: l.PartitionKey,
		IdempotencyKey: l.IdempotencyKey, CorrelationID: l.CorrelationID, ContentType: l.ContentType,
		Headers: l.Headers, Created: l.EnqueuedAt, Body: l.Payload,
	}
}
