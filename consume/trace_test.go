package consume_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// The handler's context carries the trace of the event, in whatever form the event
// brings it, and the log of its retries leads to the trace.
func TestHandlersKnowTheTraceOfTheEvent(t *testing.T) {
	header := func(name, value string) deadletter.Header { return deadletter.Header{Name: name, Value: value} }
	binary := func(b consume.Binding, own ...deadletter.Header) func(*testing.T) consume.Event {
		return func(t *testing.T) consume.Event {
			headers := append(own, header(b.Prefix+"specversion", "1.0"), header(b.Prefix+"id", "e1"), header(b.Prefix+"source", "/s"), header(b.Prefix+"type", "t"))
			return decoded(t, b, headers, "data")
		}
	}
	for _, tc := range []struct {
		name       string
		event      func(*testing.T) consume.Event
		want, logs string
	}{
		{"headers", binary(consume.HTTP, header("Traceparent", parent), header("Tracestate", "a=1")), parent + " a=1", traceID},
		{"headers of Kafka", binary(consume.Kafka, header("traceparent", parent)), parent + " ", traceID},
		{"attributes over HTTP", binary(consume.HTTP, header("Ce-Traceparent", parent), header("Ce-Tracestate", "a=1")), parent + " a=1", traceID},
		{"attributes in Kafka", binary(consume.Kafka, header("ce_traceparent", parent)), parent + " ", traceID},
		{"attributes in AMQP", binary(consume.AMQP, header("cloudEvents:traceparent", parent)), parent + " ", traceID},
		{"a structured event", func(t *testing.T) consume.Event {
			return decoded(t, consume.HTTP, []deadletter.Header{header("Content-Type", "application/cloudevents+json")},
				`{"specversion":"1.0","id":"e1","source":"/s","type":"t","data":{},"traceparent":"`+parent+`","tracestate":"a=1"}`)
		}, parent + " a=1", traceID},
		{"a correlation id beside it", binary(consume.HTTP, header("Traceparent", parent), header("X-Correlation-Id", "corr-1")), parent + " ", "corr-1"},
		{"none", binary(consume.HTTP), " ", "e1"},
		{"one that is none", binary(consume.HTTP, header("Traceparent", "00-x-y-01"), header("Tracestate", "a=1")), " ", "e1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				o := options(t, &letters{})
				o.Retryer = forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter(), forbear.WithBudget(&gateBudget{open: true}),
					forbear.WithObserver(forbear.LogObserver(slog.New(slog.NewTextHandler(&log, nil)), nil))))
				runs := 0
				c := consumer(t, o, func(ctx context.Context, _ consume.Event) error {
					if got := edge.TraceContextFrom(ctx); got.Parent()+" "+got.State() != tc.want {
						t.Errorf("the handler's trace is %q, want %q", got.Parent()+" "+got.State(), tc.want)
					}
					if runs++; runs == 1 {
						return flaky()
					}
					return nil
				})
				deliver(t, c, tc.event(t))
				if runs != 2 || !strings.Contains(log.String(), "correlation_id="+tc.logs+" ") {
					t.Errorf("%d runs, want 2 and correlation_id=%s in\n%s", runs, tc.logs, log.String())
				}
			})
		})
	}
}

func decoded(t *testing.T, b consume.Binding, headers []deadletter.Header, data string) consume.Event {
	t.Helper()
	e, err := b.Decode(headers, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return e
}
