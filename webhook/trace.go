package webhook

import (
	"context"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/edge"
)

// The headers by which a message carries the trace of who submitted it. They are
// stored with the others, and sent with each delivery.
const (
	headerTraceparent = "Traceparent"
	headerTracestate  = "Tracestate"
)

// Trace adds the trace context of ctx to the message's headers, unless they have one
// or are as many as there may be: see [edge.WithTraceContext]. [Outbox] and the
// dispatcher's Accept do it for every message.
func (m *Message) Trace(ctx context.Context) {
	t := edge.TraceContextFrom(ctx)
	if t == (edge.TraceContext{}) || len(m.Headers) > maxHeaders-2 || slices.ContainsFunc(m.Headers, isTrace) {
		return
	}
	m.Headers = append(slices.Clip(m.Headers), Header{Name: headerTraceparent, Value: t.Parent()})
	if t.State() != "" {
		m.Headers = append(m.Headers, Header{Name: headerTracestate, Value: t.State()})
	}
}

// traceContext returns the trace context that the message carries.
func (m *Message) traceContext() edge.TraceContext {
	return edge.ParseTraceContext(m.header(headerTraceparent), m.header(headerTracestate))
}

// header returns the first value of a header.
func (m *Message) header(name string) string {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

func isTrace(h Header) bool {
	return strings.EqualFold(h.Name, headerTraceparent) || strings.EqualFold(h.Name, headerTracestate)
}

// untraced returns headers without those of the trace: a message that is submitted
// again comes from another span, and is the same message.
func untraced(headers []Header) []Header {
	if !slices.ContainsFunc(headers, isTrace) {
		return headers
	}
	return slices.DeleteFunc(slices.Clone(headers), isTrace)
}
