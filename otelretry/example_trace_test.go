package otelretry_test

import (
	"context"
	"fmt"
	"io"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/otelretry"
	"github.com/forbear-go/forbear/webhook"
)

// Trace a call that is not HTTP, with its attempts below it.
func ExampleDo() {
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	cache, err := forbear.New("cache", quick, forbear.WithoutLog())
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := 0
	_ = otelretry.Do(context.Background(), cache, "get", func(context.Context) error {
		if calls++; calls == 1 {
			return forbear.Retryable(io.ErrUnexpectedEOF, forbear.Hint{})
		}
		return nil
	}, otelretry.WithTracerProvider(traces))
	call := spans.Ended()[2] // a span ends after those below it
	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), s.Parent().SpanID() == call.SpanContext().SpanID())
	}
	// Output:
	// get attempt true
	// get attempt true
	// get false
}

// A message that is submitted takes the trace along, to its receiver or to the handler
// of the event that it is.
func ExampleCarry() {
	traces := sdktrace.NewTracerProvider()
	ctx, span := traces.Tracer("shop").Start(context.Background(), "order")
	defer span.End()
	m := webhook.Message{ID: "order-17", Endpoints: []string{"mail"}}
	m.Trace(otelretry.Carry(ctx)) // as webhook.Outbox and the dispatcher do

	handle := otelretry.Handled("mail", func(ctx context.Context, _ consume.Event) error {
		fmt.Println(otelretry.TraceID(ctx) == otelretry.TraceID(otelretry.Continue(ctx)), edge.TraceContextFrom(ctx).TraceID() == span.SpanContext().TraceID().String())
		return nil
	}, otelretry.WithTracerProvider(traces))
	e := consume.Event{ID: m.ID, Headers: append([]deadletter.Header{}, m.Headers...)}
	_ = handle(edge.WithTraceContext(context.Background(), e.TraceContext()), e) // as a Consumer does
	// Output: true true
}
