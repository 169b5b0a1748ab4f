package dispatch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/resend"
	"github.com/forbear-go/forbear/webhook"
)

// attempt is one attempt and what it came to, with or without an HTTP response: the event
// that a receiver learns from.
type attempt struct {
	ep   *endpoint // the configuration that it was made with
	look time.Time // when it began, on the monotonic clock

	record  deadletter.Attempt // for the history of its message
	failure forbear.Failure    // of class Success for a good one
	cause   deadletter.Cause   // why it failed, as it may be kept
	final   bool               // the engine has ended the message for what was responded
	// unready says that no attempt was made: a credential or a secret was not
	// to be had.
	unready error
}

// delivered reports whether the receiver has accepted the message.
func (a *attempt) delivered() bool {
	return a.unready == nil && a.failure.Class == forbear.ClassSuccess
}

// counts reports whether an attempt was made and ran to its end. One that was cut
// off by a stop says nothing of the receiver, though it may have seen it.
func (a *attempt) counts() bool {
	return a.unready == nil && a.failure.Class != forbear.ClassCanceled
}

// missing says what credential was not to be had, cut to what fits into a list.
func (a *attempt) missing() string {
	s := a.unready.Error()
	return strings.ToValidUTF8(s[:min(len(s), 256)], "")
}

// explain records why the attempt failed.
func (a *attempt) explain() {
	a.cause = deadletter.CauseOf(a.failure)
	failed := a.cause.Failed()
	a.record.Class, a.record.Error, a.record.Chain = failed.Class, failed.Error, failed.Chain
}

// errAttemptTimeout is the cause of a context that an attempt outlasted, and
// distinguishes it from a stop.
var errAttemptTimeout = errors.New("attempt timed out")

// unsendable is the error type of a message that cannot be made a request.
const unsendable = "unsendable"

// send makes one attempt, within limit, and measures it. Without its credential nothing is
// sent.
func (r *receiver) send(ctx context.Context, ep *endpoint, m *webhook.Message, number int, limit time.Duration) *attempt {
	// The wall clock for what is stored, the monotonic one for what is measured: an
	// attempt does not become slow by a clock that is set.
	a := &attempt{ep: ep, look: time.Now(), record: deadletter.Attempt{Number: number, At: r.d.now()}}
	actx, cancel := context.WithTimeoutCause(ctx, limit, errAttemptTimeout)
	defer cancel()
	sign, err := ep.signing(actx)
	auth, transport := "", http.RoundTripper(nil)
	if err == nil {
		auth, err = ep.cred.value(actx)
	}
	if err == nil {
		transport, err = ep.transport(actx)
	}
	if err != nil {
		a.unready = err
		return a
	}
	r.ready(a.look) // before the send, which may take long
	req, err := ep.request(actx, m, sign, auth, number)
	if err != nil {
		// The same message would fail in the same way each time.
		a.failure = forbear.Failure{Class: forbear.ClassTerminal, Type: unsendable, Err: err}
	} else if resp, err := resend.Once(transport).RoundTrip(req); err != nil {
		// Not through an http.Client: it would follow redirects, and each hop would
		// be another way in.
		a.failure = noResponse(ctx, actx, req, err)
	} else {
		a.read(req, resp, auth)
	}
	a.record.Took, a.record.ErrorType = time.Since(a.look), a.failure.Type
	return a
}

// noResponse classifies an attempt that ended without a response. ctx is the
// dispatcher's and actx the attempt's.
func noResponse(ctx, actx context.Context, req *http.Request, err error) forbear.Failure {
	err = bare(err)
	if errors.Is(err, webhook.ErrBlocked) {
		return forbear.Failure{Class: forbear.ClassTerminal, Type: "address_blocked", Err: err}
	}
	// The attempt's own timeout is not the caller's deadline.
	f := httpretry.Classify(req.WithContext(context.WithoutCancel(ctx)), nil, err)
	if f.Class != forbear.ClassCertificate && ctx.Err() == nil && context.Cause(actx) == errAttemptTimeout {
		f = forbear.Failure{Class: forbear.ClassTimeout, Type: errtype.Timeout, Err: err}
	}
	if ctx.Err() != nil {
		f.Class, f.Type = forbear.ClassCanceled, errtype.Canceled
	}
	return f
}

// maxDrain bounds what is read of a long body beyond what is kept, so that the
// connection can be used again: beyond it a new connection is cheaper.
const maxDrain = 64 << 10

// read classifies an HTTP response: 2xx is a success, anything else is not.
func (a *attempt) read(req *http.Request, resp *http.Response, auth string) {
	defer func(raw io.Closer) { _ = raw.Close() }(resp.Body)
	var body []byte
	if resp.Body != http.NoBody {
		var err error
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxResponse))
		if err == nil && len(body) == maxResponse {
			_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
		}
	}
	if a.record.Status = resp.StatusCode; len(body) > 0 {
		a.record.Response = redact(body, auth)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	a.failure = httpretry.ClassifyBy(&a.ep.conf.Policy, req, resp, nil, time.Time{})
}

// usualHeaders is how many header lines an attempt has: what fits into a small
// map.
const usualHeaders = 8

// lines are the headers of one attempt, their values in one piece: a slice for
// each would be most of what an attempt allocates.
type lines struct {
	http.Header
	values []string
}

// put sets one header, which replaces one of the same name; name is in canonical
// form.
func (l *lines) put(name, value string) {
	l.values = append(l.values, value)
	n := len(l.values)
	l.Header[name] = l.values[n-1 : n : n]
}

// request builds the signed request. Its body has no GetBody, so that net/http
// cannot repeat the send by itself.
func (e *endpoint) request(ctx context.Context, m *webhook.Message, sign *webhook.Signer, auth string, number int) (*http.Request, error) {
	h := lines{make(http.Header, usualHeaders), make([]string, 0, usualHeaders)}
	for _, line := range e.conf.Headers {
		h.Add(line.Name, line.Value)
	}
	for _, line := range m.Headers {
		h.Add(line.Name, line.Value)
	}
	body, err := m.Encode(e.conf.Format, h.Header)
	if err != nil {
		return nil, err
	}
	now := e.d.now()
	h.put("User-Agent", "forbear-webhook/1")
	id := m.SentID()
	h.put("Webhook-Id", id)
	h.put("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if !sign.Empty() {
		h.put("Webhook-Signature", sign.Sign(id, now, body))
	}
	h.put("Idempotency-Key", m.SentKey())
	h.put(httpretry.HeaderAttempt, strconv.Itoa(number-1))
	if m.CorrelationID != "" {
		h.put("X-Correlation-Id", m.CorrelationID)
	}
	if auth != "" {
		h.put("Authorization", auth)
	}
	req := e.plain.WithContext(ctx)
	req.Header, req.ContentLength = h.Header, int64(len(body))
	if req.Body = http.NoBody; len(body) > 0 { // another empty one would be sent in chunks (RFC 9110 section 8.6)
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	return req, nil
}

// maxResponse is how much of a response's body is kept, in bytes. Receivers say
// there why they refuse; more than that is a page for a browser.
const maxResponse = 4 << 10

const redacted = "[redacted]"

// redact makes the beginning of a response safe to keep: at most [maxResponse]
// bytes of text, without the credential that was sent and without what looks like
// one. Receivers echo requests, and histories are read by more people than may
// know the secrets.
func redact(body []byte, sent string) string {
	s := strings.ToValidUTF8(string(body), "?")
	if sent != "" {
		s = strings.ReplaceAll(s, sent, redacted)
		// The token without its scheme, unless it is so short that it would be
		// found in ordinary words.
		if _, token, ok := strings.Cut(sent, " "); ok && len(token) > 4 {
			s = strings.ReplaceAll(s, token, redacted)
		}
	}
	return deadletter.Redact(s, maxResponse)
}
