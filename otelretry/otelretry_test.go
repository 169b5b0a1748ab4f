package otelretry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/otelretry"
)

// quick is a policy whose waits are short enough for real sockets.
var quick = forbear.Policy{Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond}}

// rig is an SDK in memory.
type rig struct {
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	traces *sdktrace.TracerProvider
	obs    *otelretry.Observer
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	r.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	var err error
	r.obs, err = otelretry.New(otelretry.WithService("checkout"),
		otelretry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) retryer(t *testing.T, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	made, err := forbear.New("payments", quick, append(opts, forbear.WithObserver(r.obs.Observer()), forbear.WithoutLog(),
		forbear.WithCorrelation(otelretry.TraceID))...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// collect returns the metrics that have points.
func (r *rig) collect(t *testing.T) (found []metricdata.Metrics) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.ScopeMetrics {
		found = append(found, s.Metrics...)
	}
	return found
}

// values returns each point of the metrics as name{attributes} value.
func (r *rig) values(t *testing.T) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, m := range r.collect(t) {
		note := func(set attribute.Set, v float64) {
			got[m.Name+"{"+set.Encoded(attribute.DefaultEncoder())+"}"] = v
		}
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				note(p.Attributes, float64(p.Value))
			}
		case metricdata.Gauge[float64]:
			for _, p := range d.DataPoints {
				note(p.Attributes, p.Value)
			}
		case metricdata.Gauge[int64]:
			for _, p := range d.DataPoints {
				note(p.Attributes, float64(p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				note(p.Attributes, float64(p.Count))
			}
		}
	}
	return got
}

func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

// Each attempt is a span with its resend count, all under the caller's span,
// and the upstream sees each attempt's own span.
func TestASpanForEachAttempt(t *testing.T) {
	var n atomic.Int64
	var mu sync.Mutex
	var parents []string
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		parents = append(parents, r.Header.Get("Traceparent"))
		mu.Unlock()
		if n.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer up.Close()
	r := newRig(t)
	rt := httpretry.NewTransport(otelretry.NewTransport(up.Client().Transport,
		otelretry.WithTracerProvider(r.traces), otelretry.WithPropagator(propagation.TraceContext{})), r.retryer(t))
	ctx, outer := r.traces.Tracer("test").Start(t.Context(), "checkout")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, up.URL+"/a?token=s3cr3t", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	outer.End()
	mu.Lock()
	defer mu.Unlock()
	spans := r.spans.Ended()
	if len(spans) != 4 {
		t.Fatalf("%d spans, want three attempts and the caller's", len(spans))
	}
	for i, s := range spans[:3] {
		count, status, failed := "", "503", "503"
		if i > 0 {
			count = fmt.Sprint(i)
		}
		if i == 2 {
			status, failed = "200", ""
		}
		if s.Name() != "GET" || s.SpanKind() != trace.SpanKindClient || s.Parent().SpanID() != outer.SpanContext().SpanID() ||
			attr(s, "http.request.resend_count") != count || attr(s, "http.response.status_code") != status ||
			attr(s, "error.type") != failed || attr(s, "url.full") != up.URL+"/a" || attr(s, "server.address") != "127.0.0.1" {
			t.Errorf("attempt %d: %s %v under %s", i+1, s.Name(), s.Attributes(), s.Parent().SpanID())
		}
		if want := s.SpanContext().SpanID().String(); !strings.Contains(parents[i], want) {
			t.Errorf("attempt %d: the upstream saw %q, want span %s", i+1, parents[i], want)
		}
	}
	if events := spans[3].Events(); len(events) != 2 || events[0].Name != "retry" {
		t.Errorf("events of the caller's span: %v", events)
	}
}

// TestHealthGate shows a gate that nothing has closed, with its rate; a dependency
// without one has neither.
func TestHealthGate(t *testing.T) {
	const gate, rate = "health_gate_healthy{dependency=payments,service=checkout}", "health_success_rate{dependency=payments,service=checkout}"
	r := newRig(t)
	if _, err := forbear.New("payments", forbear.Policy{Health: health.Policy{MinSuccess: 0.5}}, forbear.WithObserver(r.obs.Observer())); err != nil {
		t.Fatal(err)
	}
	if got := r.values(t); got[gate] != 1 || got[rate] != 1 {
		t.Errorf("got %v and %v, want 1 and 1", got[gate], got[rate])
	}
	none := newRig(t)
	none.retryer(t)
	if got, ok := none.values(t)[gate]; ok {
		t.Errorf("without a gate: %v", got)
	}
}

func TestMetricsBearTheNamesOfTheStandard(t *testing.T) {
	r := newRig(t)
	payments := r.retryer(t, forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)))
	n := 0
	_ = payments.Do(t.Context(), func(context.Context) error {
		if n++; n < 2 {
			return forbear.Retryable(errors.New("flaky"), forbear.Hint{})
		}
		return nil
	})
	_ = payments.Do(t.Context(), func(context.Context) error { return forbear.Retryable(errors.New("flaky"), forbear.Hint{}) })
	r.obs.Observer().DeadLettered(t.Context(), forbear.DeadLettered{Queue: "orders-dlq"})
	payments.Breaker().Force(breaker.Open, "jane", time.Now())
	_ = payments.Do(t.Context(), func(context.Context) error { return nil })
	got := r.values(t)
	for name, want := range map[string]float64{
		"retry_initial_requests_total{dependency=payments,service=checkout}":                                         2,
		"retry_attempts_total{attempt_number=2,dependency=payments,service=checkout}":                                2,
		"retry_attempts_total{attempt_number=4,dependency=payments,service=checkout}":                                1,
		"retry_exhausted_total{dependency=payments,service=checkout}":                                                1,
		"retry_backoff_duration_seconds{dependency=payments,service=checkout}":                                       4,
		"retry_success_after_retry_total{dependency=payments,error_type=retryable_error,service=checkout}":           1,
		"retry_failed_calls_total{dependency=payments,error_type=retryable_error,reason=exhausted,service=checkout}": 1,
		"retry_attempts_per_call{dependency=payments,service=checkout}":                                              2,
		"retry_attempt_duration_seconds{attempt=retry,dependency=payments,service=checkout}":                         4,
		"circuit_breaker_calls_total{dependency=payments,outcome=not_permitted,service=checkout}":                    1,
		"circuit_breaker_state_transitions_total{dependency=payments,from=closed,service=checkout,to=open}":          1,
		"circuit_breaker_state{dependency=payments,service=checkout}":                                                1,
		"dlq_messages_total{queue=orders-dlq}":                                                                       1,
		"retry_suppressed_total{dependency=payments,reason=breaker_open,service=checkout}":                           1,
		"circuit_breaker_opened_total{cause=operator,dependency=payments,service=checkout}":                          1,
		"circuit_breaker_opened_total{cause=failures,dependency=payments,service=checkout}":                          0,
		"circuit_breaker_state_transitions_total{dependency=payments,from=half-open,service=checkout,to=open}":       0,
		"circuit_breaker_budget_exhausted{dependency=payments,service=checkout}":                                     0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: got %v (%v), want %v", name, v, ok, want)
		}
	}
	if _, ok := got["retry_paced_total{dependency=payments,service=checkout}"]; ok {
		t.Error("a call that somebody waits for has a count of paced retries")
	}
	if _, ok := got["retry_budget_utilization_ratio{dependency=payments,service=checkout}"]; !ok {
		t.Errorf("no budget utilization in %v", got)
	}
}

// spent is a budget that grants nothing.
type spent struct{}

func (spent) Request(time.Time)                 {}
func (spent) Spend(time.Time, budget.Cost) bool { return false }
func (spent) Refund(time.Time, budget.Cost)     {}
func (spent) Level(time.Time) budget.Level      { return budget.Level{Used: 1, Allowed: 1} }

// A spent budget is shown, whatever it makes of the breaker; durable work goes on
// at its pace.
func TestASpentBudgetIsShown(t *testing.T) {
	for name, tt := range map[string]struct {
		policy forbear.Policy
		want   map[string]float64
	}{
		"signal": {forbear.Policy{}, map[string]float64{
			"circuit_breaker_state{dependency=payments,service=checkout}":                          0,
			"circuit_breaker_budget_exhausted{dependency=payments,service=checkout}":               1,
			"circuit_breaker_opened_total{cause=budget,dependency=payments,service=checkout}":      0,
			"retry_budget_exhausted_total{dependency=payments,service=checkout}":                   1,
			"retry_suppressed_total{dependency=payments,reason=budget_exhausted,service=checkout}": 1,
		}},
		"immediate": {forbear.Policy{Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}}, map[string]float64{
			"circuit_breaker_state{dependency=payments,service=checkout}":                     1,
			"circuit_breaker_budget_exhausted{dependency=payments,service=checkout}":          1,
			"circuit_breaker_opened_total{cause=budget,dependency=payments,service=checkout}": 1,
		}},
		"durable": {forbear.Policy{Kind: forbear.Batch, Backoff: quick.Backoff}, map[string]float64{
			"circuit_breaker_budget_exhausted{dependency=payments,service=checkout}": 1,
			"retry_paced_total{dependency=payments,service=checkout}":                1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			payments, err := forbear.New("payments", tt.policy, forbear.WithBudget(spent{}), forbear.WithObserver(r.obs.Observer()), forbear.WithoutLog())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			op := func(context.Context) error {
				if n++; n == 20 {
					return forbear.Retryable(errors.New("flaky"), forbear.Hint{})
				}
				return nil
			}
			for range 20 {
				_ = payments.Do(t.Context(), op)
			}
			got := r.values(t)
			for name, want := range tt.want {
				if v, ok := got[name]; !ok || v != want {
					t.Errorf("%s: got %v (%v), want %v", name, v, ok, want)
				}
			}
		})
	}
}

func TestTraceIDCorrelates(t *testing.T) {
	r := newRig(t)
	ctx, span := r.traces.Tracer("test").Start(t.Context(), "checkout")
	defer span.End()
	if got := otelretry.TraceID(ctx); got != span.SpanContext().TraceID().String() {
		t.Errorf("got %q", got)
	}
	if got := otelretry.TraceID(t.Context()); got != "" {
		t.Errorf("without a trace: %q", got)
	}
}

func TestTracedOperation(t *testing.T) {
	r := newRig(t)
	payments := r.retryer(t)
	n := 0
	op := otelretry.Traced("charge", func(context.Context) error {
		if n++; n < 2 {
			return forbear.Retryable(io.ErrUnexpectedEOF, forbear.Hint{})
		}
		return nil
	}, otelretry.WithTracerProvider(r.traces))
	if err := payments.Do(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	spans := r.spans.Ended()
	if len(spans) != 2 || attr(spans[0], "forbear.attempt") != "1" || attr(spans[1], "forbear.attempt") != "2" ||
		attr(spans[0], "error.type") == "" || attr(spans[1], "error.type") != "" {
		t.Errorf("got %d spans: %v", len(spans), spans)
	}
}

// What an operation calls its failures becomes no label when it is not a name.
func TestNoForeignTextBecomesALabel(t *testing.T) {
	r := newRig(t)
	const secret = "https://pay.test/?token=s3cr3t"
	info := forbear.Info{Dependency: secret, Attempt: 1}
	r.obs.Observer().Stopped(t.Context(), forbear.Stopped{Info: info, Attempts: 1, Failure: forbear.Failure{Type: secret}})
	for name := range r.values(t) {
		if strings.Contains(name, "s3cr3t") {
			t.Error(name)
		}
	}
}
