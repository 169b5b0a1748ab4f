package otelretry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/otelretry"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// tracer is an SDK whose exporter keeps the spans in memory.
type tracer struct {
	*sdktrace.TracerProvider
	exported *tracetest.InMemoryExporter
	log      strings.Builder
	opts     []otelretry.TraceOption
}

func newTracer() *tracer {
	tr := &tracer{exported: tracetest.NewInMemoryExporter()}
	tr.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(tr.exported))
	tr.opts = []otelretry.TraceOption{otelretry.WithTracerProvider(tr), otelretry.WithPropagator(propagation.TraceContext{})}
	return tr
}

// retryer logs under the id of the trace.
func (tr *tracer) retryer(t *testing.T, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	p.Backoff = quick.Backoff
	r, err := forbear.New("payments", p, append(opts, forbear.WithBudget(budget.NewTokenBucket(1000, 1000)), forbear.WithCorrelation(otelretry.TraceID),
		forbear.WithObserver(forbear.LogObserver(slog.New(slog.NewTextHandler(&tr.log, nil)), nil)))...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// picture returns the exported spans as lines "name [attributes]", indented below
// their parents, siblings in the order of their ends.
func (tr *tracer) picture(keys ...string) string {
	spans := tr.exported.GetSpans()
	var b strings.Builder
	var draw func(parent trace.SpanID, depth int)
	draw = func(parent trace.SpanID, depth int) {
		for _, s := range spans {
			if s.Parent.SpanID() != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s", strings.Repeat("  ", depth), s.Name)
			for _, key := range keys {
				if v := attr(s.Snapshot(), key); v != "" {
					fmt.Fprintf(&b, " %s=%s", key[strings.LastIndex(key, ".")+1:], v)
				}
			}
			b.WriteByte('\n')
			draw(s.SpanContext.SpanID(), depth+1)
		}
	}
	draw(trace.SpanID{}, 0)
	return b.String()
}

// logs reports the correlation ids of the log, each once.
func (tr *tracer) logs() (ids []string) {
	for line := range strings.Lines(tr.log.String()) {
		_, id, _ := strings.Cut(line, "correlation_id=")
		if id, _, _ = strings.Cut(id, " "); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (tr *tracer) only(t *testing.T, id trace.TraceID) {
	t.Helper()
	if got := tr.logs(); !slices.Equal(got, []string{id.String()}) {
		t.Errorf("the log leads to the traces %q, want %s", got, id)
	}
}

// One span for the call, one below it for each attempt.
func TestACallIsOneSpanWithItsAttemptsBelow(t *testing.T) {
	var n atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer up.Close()
	tr := newTracer()
	client := &http.Client{Transport: otelretry.NewCallTransport(
		httpretry.NewTransport(otelretry.NewTransport(up.Client().Transport, tr.opts...), tr.retryer(t, forbear.Policy{})), tr.opts...)}
	ctx, checkout := tr.Tracer("test").Start(t.Context(), "checkout")
	get := func() {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, up.URL+"/a?token=s3cr3t", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	get()
	n.Store(-10)
	get() // which is never well
	checkout.End()
	const want = `checkout
  GET call status_code=200
    GET status_code=503 type=503
    GET resend_count=1 status_code=503 type=503
    GET resend_count=2 status_code=200
  GET call status_code=503 type=503 reason=exhausted attempts=4
    GET status_code=503 type=503
    GET resend_count=1 status_code=503 type=503
    GET resend_count=2 status_code=503 type=503
    GET resend_count=3 status_code=503 type=503
`
	if got := tr.picture("http.request.resend_count", "http.response.status_code", "error.type", "forbear.reason", "forbear.attempts"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	tr.only(t, checkout.SpanContext().TraceID())
	if text := fmt.Sprintf("%+v", tr.exported.GetSpans()); strings.Contains(text, "s3cr3t") {
		t.Error("a span holds the query")
	}
}

func TestDoIsOneSpanWithItsAttemptsBelow(t *testing.T) {
	tr := newTracer()
	r := tr.retryer(t, forbear.Policy{})
	n := 0
	ctx, checkout := tr.Tracer("test").Start(t.Context(), "checkout")
	for _, good := range []bool{true, false} {
		err := otelretry.Do(ctx, r, "append", func(context.Context) error {
			if n++; n == 1 || !good {
				return forbear.Retryable(errors.New("s3cr3t"), forbear.Hint{})
			}
			return nil
		}, tr.opts...)
		if (err == nil) != good {
			t.Errorf("err %v", err)
		}
	}
	checkout.End()
	const want = `checkout
  append dependency=payments
    append attempt attempt=1 type=_OTHER
    append attempt dependency=payments attempt=2
  append dependency=payments reason=exhausted type=_OTHER
    append attempt attempt=1 type=_OTHER
    append attempt dependency=payments attempt=2 type=_OTHER
    append attempt dependency=payments attempt=3 type=_OTHER
    append attempt dependency=payments attempt=4 type=_OTHER
`
	if got := tr.picture("forbear.dependency", "forbear.attempt", "forbear.reason", "error.type"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	tr.only(t, checkout.SpanContext().TraceID())
	if text := fmt.Sprintf("%+v", tr.exported.GetSpans()); strings.Contains(text, "s3cr3t") {
		t.Error("a span holds an error's text")
	}
	if err := otelretry.Do(ctx, r, "none", nil, tr.opts...); err == nil {
		t.Error("an operation that is nil is no error")
	}
}

type noLetters struct{}

func (noLetters) Put(context.Context, deadletter.Letter) error { return nil }

// The runs of an event's handler are below the span that published it, and what the
// handler submits is below the run. A redrive has a trace of its own, with a link.
func TestConsumersContinueTheTraceOfTheEvent(t *testing.T) {
	tr := newTracer()
	runs := 0
	var submitted []string
	c, err := consume.New(otelretry.Handled("orders", func(ctx context.Context, _ consume.Event) error {
		submitted = append(submitted, edge.TraceContextFrom(ctx).Parent())
		if runs++; runs == 1 {
			return forbear.Retryable(errors.New("busy"), forbear.Hint{})
		}
		return nil
	}, tr.opts...), consume.Options{
		Group: "mail", Store: &memstore.Idempotency{}, DLQ: noLetters{},
		Retryer: tr.retryer(t, forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter()),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, publish := tr.Tracer("test").Start(t.Context(), "publish")
	parent := edge.TraceContextFrom(otelretry.Carry(ctx)).Parent()
	publish.End()
	if !strings.Contains(parent, publish.SpanContext().SpanID().String()) {
		t.Errorf("carried %q, want span %s", parent, publish.SpanContext().SpanID())
	}
	e := consume.Event{ID: "e1", Source: "/shop", Headers: []deadletter.Header{{Name: "traceparent", Value: parent}}}
	if d := c.Consume(t.Context(), e); !d.Acknowledge() {
		t.Fatalf("got %+v", d)
	}
	const want = `publish
  process orders attempt=1 id=e1 type=_OTHER
  process orders attempt=2 id=e1
`
	if got := tr.picture("forbear.attempt", "messaging.message.id", "error.type"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	tr.only(t, publish.SpanContext().TraceID())
	for i, s := range tr.exported.GetSpans()[1:] {
		if s.SpanKind != trace.SpanKindConsumer || !strings.Contains(submitted[i], s.SpanContext.SpanID().String()) {
			t.Errorf("run %d: a span of kind %v, and the handler's trace is %s", i+1, s.SpanKind, submitted[i])
		}
	}

	tr.exported.Reset()
	e.ID, e.Redrive = "e2", true
	c.Consume(t.Context(), e)
	spans := tr.exported.GetSpans()
	if len(spans) != 1 || spans[0].Parent.IsValid() || len(spans[0].Links) != 1 || spans[0].Links[0].SpanContext.SpanID() != publish.SpanContext().SpanID() {
		t.Errorf("a redrive: %+v", spans)
	}
}

// A request that no span surrounds is below the span that its own headers name.
func TestRequestsContinueTheTraceOfTheirHeaders(t *testing.T) {
	var seen string
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Traceparent") }))
	defer up.Close()
	tr := newTracer()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, up.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	req.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	resp, err := otelretry.NewTransport(up.Client().Transport, tr.opts...).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	s := tr.exported.GetSpans()[0]
	if s.Parent.SpanID().String() != "00f067aa0ba902b7" || seen != "00-"+trace+"-"+s.SpanContext.SpanID().String()+"-01" {
		t.Errorf("a span below %s, and the receiver saw %q", s.Parent.SpanID(), seen)
	}
}
