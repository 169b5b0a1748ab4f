package otelretry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/httpretry"
)

// Do is [forbear.Retryer.Do] with a span of that name around the whole call, waits
// included, and one below it around each attempt, as [Traced] makes it.
func Do(ctx context.Context, r *forbear.Retryer, name string, op func(context.Context) error, opts ...TraceOption) error {
	ctx, span := newTracing(opts).tracer.Start(ctx, name, trace.WithAttributes(attribute.String("forbear.dependency", r.Dependency())))
	defer span.End()
	if op != nil {
		op = Traced(name+" attempt", op, opts...)
	}
	err := r.Do(ctx, op)
	end(span, err)
	return err
}

// end writes into a span what its call or attempt came to.
func end(span trace.Span, err error) {
	if err == nil {
		return
	}
	span.SetStatus(codes.Error, "") // the error's text may hold what must not be seen
	if e, ok := errors.AsType[*forbear.Error](err); ok {
		span.SetAttributes(attribute.String("forbear.reason", e.Reason.String()), attribute.Int("forbear.attempts", e.Attempts))
	}
	f, _ := edge.ClassifyNet(err)
	if f.Type == "" {
		f.Type = "_OTHER"
	}
	span.SetAttributes(attribute.String("error.type", f.Type))
}

// calls makes a span of each logical call.
type calls struct {
	tracing
	next http.RoundTripper
}

// NewCallTransport returns a RoundTripper that makes a span of each logical call,
// waits included. It belongs above httpretry's, as [NewTransport] belongs below: the
// spans of the attempts are then its children. It ends with the headers of the
// response that the caller gets.
//
//	otelretry.NewCallTransport(httpretry.NewTransport(otelretry.NewTransport(nil), payments))
//
// A nil next means http.DefaultTransport.
func NewCallTransport(next http.RoundTripper, opts ...TraceOption) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &calls{newTracing(opts), next}
}

// CloseIdleConnections closes those of the transport below.
func (t *calls) CloseIdleConnections() { closeIdle(t.next) }

// RoundTrip implements [http.RoundTripper].
func (t *calls) RoundTrip(req *http.Request) (*http.Response, error) {
	name, method := nameOf(req.Method)
	ctx, span := t.tracer.Start(req.Context(), name+" call", trace.WithAttributes(callAttributes(req, method)...))
	defer span.End()
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if resp == nil {
		end(span, err)
		return resp, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	// Why it is not tried again no attempt's span can know.
	if e, ok := httpretry.Outcome(resp); ok {
		span.SetAttributes(attribute.String("forbear.reason", e.Reason.String()), attribute.Int("forbear.attempts", e.Attempts))
	}
	if resp.StatusCode >= 400 {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", errorType(resp, forbear.Failure{})))
	}
	return resp, err
}
