package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/forbear-go/forbear/internal/testkit/hostiletest"
)

// collector receives OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*tracepb.Span
	service string
	metrics map[string]bool
	raw     strings.Builder // everything, for those who look for secrets
}

func newCollector(t *testing.T) *collector {
	c := &collector{metrics: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var req collectortrace.ExportTraceServiceRequest
		if !c.read(t, r, &req) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range req.ResourceSpans {
			for _, kv := range rs.Resource.Attributes {
				if kv.Key == "service.name" {
					c.service = kv.Value.GetStringValue()
				}
			}
			for _, s := range rs.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var req collectormetrics.ExportMetricsServiceRequest
		if !c.read(t, r, &req) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rm := range req.ResourceMetrics {
			for _, s := range rm.ScopeMetrics {
				for _, m := range s.Metrics {
					c.metrics[m.Name] = true
				}
			}
		}
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// read reports whether it could read the request. One that is cut short is none: the
// export under way when serve stops, which is followed by the last one.
func (c *collector) read(t *testing.T, r *http.Request, into proto.Message) bool {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	if err := proto.Unmarshal(b, into); err != nil {
		t.Errorf("collector: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(b)
	return true
}

// export sets the variables by which serve finds the collector.
func (c *collector) export(t *testing.T) {
	for k, v := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "none", "OTEL_SERVICE_NAME": "named-by-environment",
		"OTEL_METRIC_EXPORT_INTERVAL": "100", "OTEL_BSP_SCHEDULE_DELAY": "100",
	} {
		t.Setenv(k, v)
	}
}

// By the usual variables, serve sends a span for each attempt and the metrics
// to a collector.
func TestServeExportsToACollector(t *testing.T) {
	c := newCollector(t)
	c.export(t)
	s := startServe(t, "--listen", "127.0.0.1:0")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/flaky/status/503?times=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	req.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if code := s.stop(); code != 0 { // which sends what is left
		t.Errorf("code %d: %s", code, s.log)
	}
	deadline := time.Now().Add(time.Minute)
	for done := false; !done && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		c.mu.Lock()
		done = len(c.spans) >= 4 && c.metrics["retry_attempts_total"]
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	resends := map[int64]bool{}
	for _, span := range c.spans {
		if got := span.TraceId; len(got) != 16 || got[0] != 0x4b || got[15] != 0x36 {
			t.Errorf("span %s is of trace %x, want the caller's", span.Name, got)
		}
		for _, kv := range span.Attributes {
			if kv.Key == "http.request.resend_count" {
				resends[kv.Value.GetIntValue()] = true
			}
		}
	}
	if len(c.spans) != 4 || !resends[1] || !resends[2] || len(resends) != 2 {
		t.Errorf("%d spans with resend counts %v, want the call, three attempts, and the counts 1 and 2", len(c.spans), resends)
	}
	if c.service != "named-by-environment" {
		t.Errorf("service.name is %q", c.service)
	}
	for _, name := range []string{"retry_attempts_total", "retry_backoff_duration_seconds", "retry_budget_utilization_ratio", "circuit_breaker_state"} {
		if !c.metrics[name] {
			t.Errorf("the collector got no %s, but %v", name, c.metrics)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "correlation_id="+trace) {
		t.Errorf("the log of retries does not lead to the trace:\n%s", log)
	}
}

func TestTelemetryIsOffUnlessAskedFor(t *testing.T) {
	if wantsTelemetry() {
		t.Error("on without a word of the environment")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	if !wantsTelemetry() {
		t.Error("off, with an endpoint")
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if wantsTelemetry() {
		t.Error("on, though disabled")
	}
}

// Whatever a collector does, the process ends in its time.
func TestHostileCollectors(t *testing.T) {
	for _, s := range hostiletest.Servers() {
		if s.Status == http.StatusOK || s.Status >= 200 && s.Status%100 > 4 {
			continue // those differ in nothing that matters here
		}
		site := hostiletest.Start(t, s)
		for k, v := range map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": site.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
			"OTEL_METRIC_EXPORT_INTERVAL": "5", "OTEL_BSP_SCHEDULE_DELAY": "5", "OTEL_EXPORTER_OTLP_TIMEOUT": "100",
		} {
			t.Setenv(k, v)
		}
		all, err := newTelemetry(t.Context(), slog.New(slog.DiscardHandler), "s")
		if err != nil {
			t.Fatal(err)
		}
		_, span := all.tracer.Start(t.Context(), "span")
		span.End()
		for range 1000 {
			if site.Requests() > 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		ended := make(chan error, 1)
		go func() { ended <- all.shutdown(ctx) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Errorf("%s: the end of telemetry hangs", s.Name)
		}
		cancel()
	}
}
