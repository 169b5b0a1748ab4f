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

// Prepare completes a message that was handed in at the given time, and refuses
// it when it could never be delivered.
func (m *Message) Prepare(now time.Time) error {
	if m.ID == "" {
		m.ID = NewID("msg")
	}
	if m.CorrelationID == "" {
		m.CorrelationID = clip(m.ID, 128)
	}
	m.Created = now
	return m.check()
}

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

// Validate refuses an endpoint that could not be served, with all of its faults
// at once. It does not look up what the references name.
func (e *Endpoint) Validate(g Guard) error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w endpoint: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if !visible(e.ID, 64) || strings.ContainsAny(e.ID, "/?#%") {
		add("id is not 1 to 64 visible characters without / ? # %%")
	}
	if e.Version < VersionNone {
		add("version %d: want one that is stored, 0 or %d", e.Version, VersionNone)
	}
	if err := g.CheckURL(e.URL); err != nil {
		errs = append(errs, err)
	}
	if e.Format != FormatRaw && e.Format != FormatStructured && e.Format != FormatBinary {
		add("format %q: want %q, %q or none", e.Format, FormatStructured, FormatBinary)
	}
	if e.Concurrency < 0 || e.Concurrency > maxConcurrency {
		add("concurrency %d is outside 0-%d", e.Concurrency, maxConcurrency)
	}
	if e.Rate < 0 {
		add("rate %v is negative", e.Rate)
	}
	if e.DisableAfter < 0 {
		add("disable_after %v is negative", e.DisableAfter)
	}
	if err := checkHeaders(e.Headers); err != nil {
		errs = append(errs, err)
	}
	for _, field := range placeholders(e) {
		add("%s is %s, which stands for what is not shown: send the value itself, or PATCH the endpoint, where what is left out stays as it is", field, deadletter.Masked)
	}
	if e.Policy.Kind != forbear.Sync && e.Policy.Kind != forbear.Webhook {
		add("policy is of kind %s, want webhook", e.Policy.Kind)
	}
	p := e.Policy
	p.Kind = forbear.Webhook
	if err := p.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w endpoint: policy: %w", ErrInvalid, err))
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
