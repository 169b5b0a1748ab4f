package otelretry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/edge"
)

// Carry returns ctx with the place of its span for those who know nothing of spans,
// by [edge.WithTraceContext]: a message that is submitted under it, by
// webhook.Outbox.Insert or to a dispatcher, takes the trace along to its receiver. Without
// a span it is ctx.
func Carry(ctx context.Context) context.Context {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	t := edge.ParseTraceContext(headers["traceparent"], headers["tracestate"])
	if t == (edge.TraceContext{}) {
		return ctx
	}
	return edge.WithTraceContext(ctx, t)
}

// Continue is the inverse of [Carry]: it returns ctx under the remote span that
// [edge.TraceContextFrom] names, so that a new span becomes its child. A ctx that
// has a span already is returned as it is.
func Continue(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	t := edge.TraceContextFrom(ctx)
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": t.Parent(), "tracestate": t.State()})
}

// Handled returns a handler for [consume.New] that makes a consumer span of each run
// of next, under the span that published the event. A redriven event, which may be
// days old, begins a trace of its own that links to it. name is that of the queue or
// the topic.
//
// What the handler submits in its turn, to an outbox or another queue, carries the
// span on: its context is that of [Carry].
func Handled(name string, next consume.Handler, opts ...TraceOption) consume.Handler {
	t := newTracing(opts)
	return func(ctx context.Context, e consume.Event) error {
		start := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("messaging.operation.type", "process"), attribute.String("messaging.operation.name", "process"),
			attribute.String("messaging.destination.name", name), attribute.String("messaging.message.id", e.ID),
			attribute.Int("forbear.attempt", consume.Attempt(ctx)))}
		if ctx = Continue(ctx); e.Redrive {
			start = append(start, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
		}
		ctx, span := t.tracer.Start(ctx, "process "+name, start...)
		defer span.End()
		err := next(Carry(ctx), e)
		end(span, err)
		return err
	}
}
