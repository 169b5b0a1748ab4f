package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/nearest"
)

// Prepare completes a message that was handed in at the given time, and refuses
// it with [ErrInvalid] when it could never be delivered. Whatever it lets through
// survives every store and every format: the limits are the same for all, so that
// a message does not depend on where it is kept.
func (m *Message) Prepare(now time.Time) error {
	if m.ID == "" {
		m.ID = NewID("msg")
	}
	if m.CorrelationID == "" {
		m.CorrelationID = cmp.Or(m.traceContext().TraceID(), deadletter.Clip(m.ID, 128)) // an id that is too long is one fault, not two
	}
	m.Created = now
	return m.check(MaxPayload)
}

// maxID bounds the id of a message, in bytes.
const maxID = 128

// faults collects what is wrong with a message or an endpoint, so that a user
// sees all of it at once.
type faults struct {
	of   string // what is at fault, as errors name it
	list []error
}

// when adds a fault if there is one. It matches [ErrInvalid].
func (f *faults) when(wrong bool, format string, args ...any) {
	if wrong {
		f.list = append(f.list, fmt.Errorf("%w "+f.of+": "+format, append([]any{ErrInvalid}, args...)...))
	}
}

// join adds faults that were found elsewhere and returns all of them.
func (f *faults) join(errs ...error) error { return errors.Join(append(f.list, errs...)...) }

// check refuses what could never be delivered.
func (m *Message) check(maxPayload int) error {
	f := faults{of: "message"}
	f.when(m.ID != "" && !visible(m.ID, maxID), "id is not 1 to %d visible characters", maxID)
	f.when(dots(m.ID), "id is %q, which cannot stand in a URL path", m.ID)
	f.when(m.Application == "" && len(m.Endpoints) == 0, "want endpoints or an application")
	f.when(len(m.Endpoints) > maxEndpoints, "%d endpoints, want at most %d", len(m.Endpoints), maxEndpoints)
	f.when(m.Application != "" && !name(m.Application), "application "+nameRule)
	f.when(m.Application != "" && len(m.Endpoints) > 0, "want endpoints or an application, not both")
	f.when(m.IdempotencyKey != "" && !(visible(m.IdempotencyKey, 256) && visible(idemkey.Text(m.IdempotencyKey), layer.MaxKeyLen)), "idempotency_key is not 1 to %d visible characters (R-6)", layer.MaxKeyLen)
	for name, v := range map[string]string{"type": m.Type, "source": m.Source, "subject": m.Subject, "key": m.Key, "correlation_id": m.CorrelationID, "content_type": m.ContentType} {
		f.when(len(v) > 256 || !printable(v), "%s is longer than 256 bytes, is not UTF-8, or has control characters", name)
	}
	year := m.NotBefore.UTC().Year()
	f.when(year < 1 || year > 9999, "not_before is in the year %d", year) // RFC 3339 ends with 9999
	f.when(!m.Created.IsZero() && m.NotBefore.After(m.Created.AddDate(maxAhead, 0, 0)), "not_before is more than %d years ahead", maxAhead)
	f.when(!reference(m.Source), "source is not a URI or a path, such as /shop: write special characters as %%XX (RFC 3986)")
	return f.join(m.CheckPayload(maxPayload), checkHeaders(m.Headers))
}

// maxAhead is how many years ahead a message can be due. What counts in nanoseconds holds
// no more than 292.
const maxAhead = 100

// reference reports whether s is a URI reference (RFC 3986), which CloudEvents wants a
// source to be, or empty.
func reference(s string) bool {
	_, err := url.Parse(s) // also finds a % without its digits
	return err == nil && strings.Count(s, "#") <= 1 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r)
	})
}

// CheckPayload refuses, with [ErrInvalid], a body of more than limit bytes, 0 for
// [DefaultMaxPayload]. The limit is a setting of those who accept the message.
func (m *Message) CheckPayload(limit int) error {
	f := faults{of: "message"}
	limit = cmp.Or(limit, DefaultMaxPayload)
	f.when(len(m.Body) > limit, "payload of %d bytes is above the limit of %d: send less, or raise --max-payload of forbear serve", len(m.Body), limit)
	return f.join()
}

// Validate refuses an endpoint that could not be served, with all of its faults
// at once. It does not look up what the references name. What lists show cannot be
// put: a placeholder in the place of a value would replace it.
func (e *Endpoint) Validate(g Guard) error {
	f := faults{of: "endpoint"}
	f.when(!name(e.ID), "id "+nameRule)
	f.when(e.Application != "" && !name(e.Application), "application "+nameRule)
	f.when(e.Application != "" && e.ID == AlertEndpoint, "id %q is reserved for forbear: choose another", e.ID)
	f.when(len(e.URL) > maxURL, "url of %d bytes, want at most %d", len(e.URL), maxURL)
	f.when(len(e.Policy.Classify) > maxClassify, "%d classify entries, want at most %d", len(e.Policy.Classify), maxClassify)
	f.when(e.Auth != nil && (len(e.Auth.Scopes) > maxScopes || len(e.Auth.TokenURL) > maxURL || len(e.Auth.ClientID) > maxURL), "auth is too large: want at most 50 scopes, and at most 2048 bytes in token_url and client_id")
	f.when(len(e.Types) > 0 && e.Application == "", "types need an application: set application too")
	f.when(e.Unsigned && len(e.Secrets) > 0, "want secrets or unsigned, not both")
	f.when(len(e.Types) > maxTypes, "%d types, want at most %d", len(e.Types), maxTypes)
	for name := range e.Policy.Classify {
		f.when(!errorType(name), "policy.classify: %.40q is not an error type%s", name, nearest.Hint(name, errorTypes, ": want a status (http_404), a class (http_5xx), or a name such as connection_reset"))
	}
	for i, t := range e.Types {
		f.when(!pattern(t), `types[%d] %.40q: want a type ("order.shipped"), a prefix ("order.*"), or "*"`, i, t)
	}
	f.when(e.Version < VersionNone, versionRule, e.Version, VersionNone)
	f.when(e.Format != FormatRaw && e.Format != FormatStructured && e.Format != FormatBinary, "format %q: want %q, %q or an empty one", e.Format, FormatStructured, FormatBinary)
	f.when(e.Concurrency < 0 || e.Concurrency > maxConcurrency, "concurrency %d is outside 0-%d", e.Concurrency, maxConcurrency)
	f.when(e.Rate < 0, "rate %v is negative", e.Rate)
	f.when(e.DisableAfter < 0, "disable_after %v is negative", e.DisableAfter)
	for _, field := range placeholders(e) {
		f.when(true, placeholderRule, field, deadletter.Masked)
	}
	p := e.Policy
	f.when(p.Kind != forbear.Sync && p.Kind != forbear.Webhook, "policy is of kind %s, want webhook", p.Kind)
	p.Kind = forbear.Webhook
	if err := p.Validate(); err != nil {
		f.when(true, "policy: %w", err)
	}
	return f.join(g.CheckURL(e.URL), e.TLS.check(e.URL), checkHeaders(e.Headers))
}

// What faults say that messages, endpoints and applications have in common.
const (
	nameRule        = "is not 1 to 64 visible characters without / ? # %%, or is . or .."
	reasonRule      = "reason is longer than %d bytes, is not UTF-8, or has control characters"
	versionRule     = "version %d: want a stored version, 0 or %d"
	placeholderRule = "%s is %s, the placeholder of a masked value: send the value itself, or use PATCH and leave the field out"
)

// The bounds of an endpoint's configuration, which each process has in memory.
const (
	maxURL      = 2048 // bytes
	maxClassify = 100
	maxScopes   = 50
)

// name reports whether s can be the id of an endpoint or an application, which
// stands in paths.
func name(s string) bool { return visible(s, 64) && !strings.ContainsAny(s, "/?#%") && !dots(s) }

// dots reports whether s is one of the two parts of a path that name another one.
func dots(s string) bool { return s == "." || s == ".." }

// errorTypes are those of failed attempts that a policy may classify, beside http_ and a
// status. Another one would be a misspelt one, which silently does nothing.
var errorTypes = []string{
	"timeout", "unknown", "connection_refused", "connection_reset", "connection_closed", "broken_pipe", "unexpected_eof", "malformed_response",
	"dns_failure", "dns_not_found", "network_unreachable", "host_unreachable", "socket_missing", "tls_alert", "tls_record", "tls_certificate",
	"http2_connection_lost", "http2_goaway", "http2_not_resent", "proxy_403", "proxy_407", "proxy_502", "proxy_503", "proxy_504",
	"address_blocked", "credential", "http_404", "http_4xx", "http_5xx",
}

// errorType reports whether a label is one of them, or is that of a status or of a class
// of statuses.
func errorType(label string) bool {
	status, ok := strings.CutPrefix(label, "http_")
	if !ok || len(status) != 3 {
		return slices.Contains(errorTypes, label)
	}
	rest := status[1:]
	return status[0] >= '1' && status[0] <= '5' && (rest == "xx" || strings.Trim(rest, "0123456789") == "")
}

// ownHeaders are headers that a message or an endpoint may not set: the
// transport's, forbear's, which would be replaced, and those that carry credentials, which
// would be persisted. Names are in canonical form.
var ownHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true, "Host": true, "Content-Length": true,
	"Transfer-Encoding": true, "Connection": true, "Upgrade": true, "Te": true, "Trailer": true, "Keep-Alive": true,
	"Webhook-Id": true, "Webhook-Timestamp": true, "Webhook-Signature": true, "X-Retry-Attempt": true,
	"Idempotency-Key": true, "Content-Type": true, "User-Agent": true, "X-Correlation-Id": true,
	"Ce-Specversion": true, "Ce-Id": true, "Ce-Source": true, "Ce-Type": true, "Ce-Subject": true, "Ce-Partitionkey": true, "Ce-Time": true,
}

// maxHeaders bounds the header lines of a message or an endpoint.
const maxHeaders = 64

// checkHeaders refuses headers that would be refused by a receiver, start a line
// of their own, or replace forbear's.
func checkHeaders(headers []Header) error {
	var errs []error
	if len(headers) > maxHeaders {
		errs = append(errs, fmt.Errorf("%w headers: %d lines, want at most %d", ErrInvalid, len(headers), maxHeaders))
	}
	for _, h := range headers {
		switch name := textproto.CanonicalMIMEHeaderKey(h.Name); {
		case !token(h.Name):
			errs = append(errs, fmt.Errorf("%w header name %.40q: want an HTTP field name such as X-Shop", ErrInvalid, h.Name))
		case ownHeaders[name]:
			errs = append(errs, fmt.Errorf("%w header %s: only forbear sets it", ErrInvalid, name))
		case len(h.Value) > 4096 || !printable(h.Value):
			errs = append(errs, fmt.Errorf("%w header %s: its value is longer than 4096 bytes, is not UTF-8, or has control characters", ErrInvalid, name))
		}
	}
	return errors.Join(errs...)
}

// printable reports whether s survives the way through a store, a header and
// back: UTF-8 without control characters.
func printable(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, label.Control) }

// visible reports whether s is 1 to limit characters of ASCII that can be seen:
// what fits into a header, a path and a log line without an escape.
func visible(s string, limit int) bool {
	return s != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// tokenChars are the characters of a token beside letters and digits.
const tokenChars = "!#$%&'*+-.^_`|~"

// token reports whether s is a token of RFC 9110 section 5.6.2.
func token(s string) bool {
	return visible(s, 128) && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(tokenChars, r))
	})
}
