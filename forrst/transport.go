package forrst

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/peek"
)

// Options says how a transport reads responses and which calls it may repeat.
// The zero value obeys what every phase of the migration sends and repeats only
// calls with an idempotency key.
type Options struct {
	// Phase of the migration from the retryable boolean. Default Phase1.
	Phase Phase
	// Idempotent reports whether a function may be repeated without an
	// idempotency key, such as one that only reads. nil means none.
	Idempotent func(function string) bool
	// MaxBody bounds the requests and responses that are read as envelopes;
	// what is longer is judged by HTTP's rules. Default 4 MiB.
	MaxBody int
	// Logger gets the warning of Phase2, once for each transport. Default
	// slog.Default().
	Logger *slog.Logger
	// HTTP are options for the HTTP transport that sends the attempts.
	HTTP []httpretry.Option
}

// transport is immutable after NewTransport, except for the warning, and
// safe for concurrent use.
type transport struct {
	http    http.RoundTripper
	retryer *forbear.Retryer
	o       Options
	warned  atomic.Bool
}

// NewTransport returns a RoundTripper that retries Forrst calls as their
// responses say and as r decides, over [httpretry.NewTransport] with next. A
// request whose body is not a Forrst request envelope is treated as plain HTTP. A
// policy with [forbear.KeyGenerate] gives calls without an idempotency key one.
// The result is safe for concurrent use.
func NewTransport(next http.RoundTripper, r *forbear.Retryer, o Options) http.RoundTripper {
	o.Phase = cmp.Or(o.Phase, Phase1)
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	opts := append([]httpretry.Option{httpretry.WithEnvelope(callOf)}, o.HTTP...)
	return &transport{http: httpretry.NewTransport(next, r, opts...), retryer: r, o: o}
}

// CloseIdleConnections closes the idle connections of the transport below.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.http.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// callKey is the context key under which a request carries its call to the
// transport below.
type callKey struct{}

// callOf finds the call that a request carries.
func callOf(req *http.Request) httpretry.Envelope {
	if c, ok := req.Context().Value(callKey{}).(*call); ok {
		return c
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil || req.Method != http.MethodPost || !speaksJSON(req.Header) {
		return t.http.RoundTrip(req)
	}
	body, whole, again, err := peek.Body(req.Body, t.o.MaxBody)
	if err != nil {
		_ = req.Body.Close()
		return nil, err
	}
	c, ok := t.newCall(body)
	if !whole || !ok {
		// The body was read in part: it is put together again for plain
		// HTTP.
		plain := req.Clone(req.Context())
		plain.Body = again
		if whole {
			plain.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		}
		return t.http.RoundTrip(plain)
	}
	_ = req.Body.Close()
	c.ctx = req.Context()
	inner := req.Clone(context.WithValue(req.Context(), callKey{}, c))
	inner.Body, inner.GetBody, inner.ContentLength = nil, nil, 0
	resp, err := t.http.RoundTrip(inner)
	if err != nil {
		return nil, err
	}
	c.restoreID(resp)
	return resp, nil
}

// speaksJSON reports whether a body may be an envelope. A request without a
// Content-Type may: some clients send none.
func speaksJSON(h http.Header) bool {
	value := h.Get("Content-Type")
	media, _, err := mime.ParseMediaType(value)
	return value == "" || err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// Classify implements [httpretry.Envelope]: the response's own envelope rules,
// not the HTTP status.
func (c *call) Classify(resp *http.Response) forbear.Failure {
	body, whole, again, err := peek.Body(resp.Body, c.o.MaxBody)
	resp.Body = again
	if err != nil {
		f, known := edge.ClassifyNet(err)
		switch {
		case known:
		case errors.Is(err, context.Canceled) && c.ctx.Err() == nil:
			f = forbear.Failure{Class: forbear.ClassTimeout, Type: errtype.Timeout, Err: err} // the attempt's own time-out
		default:
			f = forbear.Failure{Type: errtype.Unknown, Err: err}
		}
		return f
	}
	if !whole {
		// A response too long to be read as an envelope is not rewritten
		// either.
		c.latest = nil
		return httpretry.Classify(&http.Request{Method: http.MethodPost}, resp, nil)
	}
	c.latest = body
	a := c.o.Phase.Advise(Message{
		RequestID: c.id, Status: resp.StatusCode, Header: resp.Header, Body: body, Now: time.Now(),
	})
	if a.Deprecated {
		c.warn()
	}
	if a.Failure.Hint.LongerDeadline {
		c.longer++
	}
	return a.Failure
}

// warn says, once for each transport, that the server still sends the
// boolean that Phase2 deprecates. Once is enough: every response would
// repeat it.
func (c *call) warn() {
	if c.warned.Swap(true) {
		return
	}
	cmp.Or(c.o.Logger, slog.Default()).WarnContext(c.ctx, "forrst: the server sends the deprecated field retryable: it should send the retry extension",
		slog.String("dependency", c.r.Dependency()))
}
