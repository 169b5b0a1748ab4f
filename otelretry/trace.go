package otelretry

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/layer"
)

// TraceID returns the id of the trace that ctx belongs to, or "": pass it to
// [forbear.WithCorrelation], and the log of retries leads to the trace.
func TraceID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}

// spanRetry marks a retry in the span around the call, so that a trace shows why
// there is a gap between two attempts. Labels are bounded as those of the metrics:
// an error_type may be any text of the operation's.
func (o *Observer) spanRetry(ctx context.Context, e forbear.RetryScheduled) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.AddEvent("retry", trace.WithAttributes(
		attribute.String("forbear.dependency", o.recorder.Dependency(e.Dependency)),
		attribute.Int("forbear.attempt", e.Attempt),
		attribute.Int64("forbear.backoff_ms", e.Backoff.Milliseconds()),
		attribute.String("error.type", o.recorder.ErrorType(e.Failure.Type))))
}

// spanStopped marks the end of a failed call there, with the reason that no
// attempt's own span can know.
func (o *Observer) spanStopped(ctx context.Context, e forbear.Stopped) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.AddEvent("retries stopped", trace.WithAttributes(
		attribute.String("forbear.dependency", o.recorder.Dependency(e.Dependency)),
		attribute.Int("forbear.attempts", e.Attempts),
		attribute.String("forbear.reason", e.Reason.String()),
		attribute.String("error.type", o.recorder.ErrorType(e.Failure.Type))))
}

// TraceOption changes how attempts are traced.
type TraceOption func(*tracing)

// tracing is what transports and traced operations share. The propagator is set
// for operations too, which have nothing to send it along with.
type tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// WithTracerProvider replaces the global TracerProvider.
func WithTracerProvider(p trace.TracerProvider) TraceOption {
	return func(t *tracing) { t.tracer = p.Tracer(scope) }
}

// WithPropagator replaces the global propagator, by which the span goes along
// with the request.
func WithPropagator(p propagation.TextMapPropagator) TraceOption {
	return func(t *tracing) { t.propagator = p }
}

func newTracing(opts []TraceOption) tracing {
	var t tracing
	for _, opt := range opts {
		opt(&t)
	}
	if t.tracer == nil {
		t.tracer = otel.Tracer(scope)
	}
	if t.propagator == nil {
		t.propagator = otel.GetTextMapPropagator()
	}
	return t
}

// transport makes a span of each request that goes through it.
type transport struct {
	tracing
	next http.RoundTripper
}

// NewTransport returns a RoundTripper that makes a client span of each attempt,
// and sends its context along. It belongs below httpretry's. The span ends with
// the headers of the response. A nil next means http.DefaultTransport.
func NewTransport(next http.RoundTripper, opts ...TraceOption) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &transport{newTracing(opts), next}
}

// CloseIdleConnections closes those of the transport below: http.Client asks its
// outermost transport for it.
func (t *transport) CloseIdleConnections() { closeIdle(t.next) }

func closeIdle(next http.RoundTripper) {
	if c, ok := next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// methods are those that a span is named after; others are "HTTP", since a caller
// could otherwise make up names without bound.
var methods = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "CONNECT": true,
	"OPTIONS": true, "TRACE": true, "PATCH": true,
}

// nameOf returns what a span of a request is named after, and its method as an
// attribute.
func nameOf(method string) (name, attr string) {
	method = cmp.Or(method, http.MethodGet)
	if !methods[method] {
		return "HTTP", "_OTHER"
	}
	return method, method
}

// RoundTrip implements [http.RoundTripper]. The span's resend count comes from the
// context that httpretry gives each retry.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	name, method := nameOf(req.Method)
	ctx := req.Context()
	// Without a span around it, as in a queue's delivery, the request itself may say
	// whose trace it belongs to.
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = t.propagator.Extract(ctx, propagation.HeaderCarrier(req.Header))
	}
	ctx, span := t.tracer.Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(requestAttributes(req, method)...))
	defer span.End()
	// A RoundTripper must not change its request, so the headers are a copy.
	out := req.WithContext(ctx)
	out.Header = req.Header.Clone()
	if out.Header == nil {
		out.Header = http.Header{}
	}
	t.propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
	resp, err := t.next.RoundTrip(out)
	f := httpretry.Classify(req, resp, err)
	if resp != nil {
		span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	}
	if err != nil || resp.StatusCode >= 400 {
		span.SetStatus(codes.Error, "") // the error's text may hold the URL
		span.SetAttributes(attribute.String("error.type", errorType(resp, f)))
	}
	return resp, err
}

// errorType is the status where there is one, as the conventions want it, and
// otherwise the error_type of the metrics: one search finds both.
func errorType(resp *http.Response, f forbear.Failure) string {
	if resp != nil {
		return strconv.Itoa(resp.StatusCode)
	}
	return f.Type
}

// requestAttributes follows the semantic conventions for HTTP client spans.
func requestAttributes(req *http.Request, method string) []attribute.KeyValue {
	attrs := callAttributes(req, method)
	ctx := req.Context()
	own := req.Header[httpretry.HeaderAttempt]
	if _, ok := forbear.AttemptFrom(ctx); !ok && own != nil { // a delivery out of a queue says it in its header alone
		ctx = inbound.Retry(ctx, "", http.Header{httpretry.HeaderAttempt: own})
	}
	if n, _ := forbear.AttemptFrom(ctx); n > 1 {
		attrs = append(attrs, attribute.Int("http.request.resend_count", n-1))
	}
	return attrs
}

// callAttributes are those that do not depend on the attempt. url.full is without
// user, query and fragment.
func callAttributes(req *http.Request, method string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{
		attribute.String("http.request.method", method),
		attribute.String("server.address", req.URL.Hostname()),
		attribute.String("url.full", (&url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path, RawPath: req.URL.RawPath}).String()),
	}
	if port := portOf(req.URL); port > 0 {
		attrs = append(attrs, attribute.Int("server.port", port))
	}
	return attrs
}

// portOf returns the port that a request goes to, that of the scheme where the
// URL has none; 0 for an unknown scheme.
func portOf(u *url.URL) int {
	if n, err := strconv.Atoi(u.Port()); err == nil {
		return n
	}
	switch u.Scheme {
	case "http":
		return 80
	case "https":
		return 443
	}
	return 0
}

// Traced returns op with a span of that name around each attempt, for operations
// of [forbear.Retryer.Do] that are not HTTP.
func Traced(name string, op func(context.Context) error, opts ...TraceOption) func(context.Context) error {
	t := newTracing(opts)
	return func(ctx context.Context) error {
		// A first attempt runs under the caller's own context, which knows neither.
		number, dependency := 1, ""
		if a := layer.Of(ctx); a != nil {
			number, dependency = a.Number, a.Dependency
		}
		ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attribute.Int("forbear.attempt", number)))
		defer span.End()
		if dependency != "" {
			span.SetAttributes(attribute.String("forbear.dependency", dependency))
		}
		err := op(ctx)
		end(span, err)
		return err
	}
}
