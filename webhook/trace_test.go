package webhook

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear/edge"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

func traced(t *testing.T) context.Context {
	return edge.WithTraceContext(t.Context(), edge.ParseTraceContext(parent, "a=1"))
}

// A message takes the trace of who submits it along, once, and is known by it.
func TestMessagesTakeTheTraceAlong(t *testing.T) {
	own := []Header{{Name: "X-A", Value: "1"}, {Name: "X-B", Value: "2"}}[:1:2]
	m := Message{ID: "m1", Endpoints: []string{"a"}, Headers: own}
	m.Trace(traced(t))
	want := []Header{{Name: "X-A", Value: "1"}, {Name: "Traceparent", Value: parent}, {Name: "Tracestate", Value: "a=1"}}
	if !slices.Equal(m.Headers, want) || own[:2][1].Name != "X-B" {
		t.Errorf("headers are %v, want %v; the caller's are %v", m.Headers, want, own[:2])
	}
	if err := m.Prepare(time.Now()); err != nil || m.CorrelationID != traceID {
		t.Errorf("the correlation id is %q, %v, want the trace's", m.CorrelationID, err)
	}
	m.Trace(edge.WithTraceContext(t.Context(), edge.ParseTraceContext("00-"+traceID+"-1111111111111111-01", "")))
	if !slices.Equal(m.Headers, want) {
		t.Errorf("a second trace was added: %v", m.Headers)
	}
	named := Message{ID: "m2", CorrelationID: "corr-1", Endpoints: []string{"a"}}
	named.Trace(traced(t))
	if err := named.Prepare(time.Now()); err != nil || named.CorrelationID != "corr-1" {
		t.Errorf("the correlation id is %q, %v, want the message's own", named.CorrelationID, err)
	}
	bare := Message{ID: "m3", Endpoints: []string{"a"}}
	bare.Trace(t.Context())
	if err := bare.Prepare(time.Now()); err != nil || len(bare.Headers) != 0 || bare.CorrelationID != "m3" {
		t.Errorf("without a trace: %v, correlation id %q, %v", bare.Headers, bare.CorrelationID, err)
	}
	full := Message{ID: "m4", Endpoints: []string{"a"}}
	for i := range maxHeaders {
		full.Headers = append(full.Headers, Header{Name: "X-" + strconv.Itoa(i), Value: "1"})
	}
	full.Trace(traced(t))
	if err := full.Prepare(time.Now()); err != nil {
		t.Errorf("a message with as many headers as there may be: %v", err)
	}
}

// Who submits a message again does so from another span.
func TestTheSameMessageFromAnotherSpan(t *testing.T) {
	message := func(span, value string) *Message {
		m := Message{ID: "m1", Headers: []Header{{Name: "X-A", Value: value}}}
		m.Trace(edge.WithTraceContext(t.Context(), edge.ParseTraceContext("00-"+traceID+"-"+span+"-01", "")))
		return &m
	}
	if !message("00f067aa0ba902b7", "1").SameContent(message("1111111111111111", "1")) {
		t.Error("another span makes another message")
	}
	if message("00f067aa0ba902b7", "1").SameContent(message("00f067aa0ba902b7", "2")) {
		t.Error("other headers make no other message")
	}
}
