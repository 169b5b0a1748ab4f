package edge

import (
	"context"

	"github.com/forbear-go/forbear/internal/traceparent"
)

// TraceContext is a place in a trace, by W3C Trace Context: what the headers
// traceparent and tracestate say. The zero value is none. Contexts carry it across
// what OpenTelemetry does not reach: package consume reads it from an event, and
// package webhook sends it with each delivery of a message. Module otelretry makes
// spans of it, and it of spans.
type TraceContext struct{ parent, state string }

// ParseTraceContext reads the values of the headers traceparent and tracestate. It returns the zero value
// for a traceparent that is none, and drops a tracestate that cannot be passed on.
func ParseTraceContext(parent, state string) TraceContext {
	if traceparent.ID(parent) == "" {
		return TraceContext{}
	}
	return TraceContext{parent, traceparent.State(state)}
}

// Parent returns the traceparent, or "".
func (t TraceContext) Parent() string { return t.parent }

// State returns the tracestate, or "".
func (t TraceContext) State() string { return t.state }

// TraceID returns the id of the trace, 32 hex digits, or "".
func (t TraceContext) TraceID() string { return traceparent.ID(t.parent) }

// keyTrace is the key of a place in a trace.
type keyTrace struct{}

// WithTraceContext says which place in a trace the work under the returned context
// belongs to.
func WithTraceContext(ctx context.Context, t TraceContext) context.Context {
	return context.WithValue(ctx, keyTrace{}, t)
}

// TraceContextFrom returns what [WithTraceContext] has said, or the zero value.
func TraceContextFrom(ctx context.Context) TraceContext {
	t, _ := ctx.Value(keyTrace{}).(TraceContext)
	return t
}
