package serve

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/gateway"
)

// accessLines returns the lines of the access log.
func accessLines(t *testing.T, log string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if fields["msg"] == "call" {
			found = append(found, fields)
		}
	}
	return found
}

// TestAccessLog: one line for each call, with what its caller got and what it took, and
// nothing of its path and query; the same calls are in /metrics by route.
func TestAccessLog(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Retry-Attempt") == "0" && r.Method == http.MethodPut {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	defer up.Close()
	const policy = `
dependencies:
  shop: {url: URL, backoff: {base: 1ms}}
gateway:
  listen: 127.0.0.1:0
  access_log: SHARE
  routes:
    - {prefix: /shop, dependency: shop}
    - {prefix: /narrow, methods: [GET], dependency: shop}
`
	file := strings.NewReplacer("URL", up.URL, "SHARE", "on").Replace(policy)
	admin := closed(t)
	s := startServe(t, "--no-delivery", "--log-format", "json", "--admin", strings.TrimPrefix(admin, "http://"), "--config", clitest.File(t, "policy.yaml", file))
	send := func(method, path string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	send(http.MethodPut, "/shop/secret?q=secret")
	send(http.MethodPost, "/narrow/secret")
	send(http.MethodGet, "/none/secret")
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	s.stop()
	lines := accessLines(t, s.log.String())
	if len(lines) != 3 {
		t.Fatalf("%d lines for 3 calls: %s", len(lines), s.log)
	}
	for i, want := range []map[string]any{
		{"method": "PUT", "route": "/shop", "dependency": "shop", "status": 200.0, "attempts": 2.0, "bytes_in": 4.0, "bytes_out": 4.0},
		{"method": "POST", "route": "", "dependency": "", "status": 405.0, "attempts": 0.0},
		{"method": "GET", "route": "", "dependency": "", "status": 404.0, "attempts": 0.0},
	} {
		for field, v := range want {
			if lines[i][field] != v {
				t.Errorf("line %d: %s is %v, want %v", i+1, field, lines[i][field], v)
			}
		}
		if lines[i]["duration_ms"].(float64) <= 0 || lines[i]["correlation_id"] == "" {
			t.Errorf("line %d: %v", i+1, lines[i])
		}
	}
	if strings.Contains(s.log.String(), "secret") {
		t.Errorf("the log has a path or a query: %s", s.log)
	}
	for _, want := range []string{
		`gateway_requests_total{code="200",dependency="shop",route="/shop"} 1`,
		`gateway_requests_total{code="404",dependency="",route=""} 1`,
		`gateway_request_duration_seconds_count{dependency="shop",route="/shop"} 1`,
	} {
		if !strings.Contains(string(page), want+"\n") {
			t.Errorf("/metrics has no %s:\n%s", want, page)
		}
	}
}

// TestAccessLogShare: of the calls a share is logged, and of those that failed all; off
// logs none.
func TestAccessLogShare(t *testing.T) {
	const calls = 2000
	for _, tc := range []struct {
		share       float64
		status      int
		broken      bool
		least, most int
	}{
		{0.1, 200, false, 100, 300},
		{0.1, 503, false, calls, calls},
		{0.1, 200, true, calls, calls},
		{0.1, 0, false, calls, calls},
		{1, 200, false, calls, calls},
		{0, 503, false, 0, 0},
	} {
		log := &clitest.Buffer{}
		logger, _ := newLogger(log, "json")
		w, err := newWatch(t.Context(), logger, "test", true)
		if err != nil {
			t.Fatal(err)
		}
		observe := w.calls(tc.share)
		for range calls {
			observe(t.Context(), &gateway.Record{Status: tc.status, Broken: tc.broken})
		}
		if n := len(accessLines(t, log.String())); n < tc.least || n > tc.most {
			t.Errorf("share %v, status %d: %d lines of %d calls", tc.share, tc.status, n, calls)
		}
	}
}

// TestSlowCallsHaveTheirTrace: the histogram's bucket names a trace that is in it.
func TestSlowCallsHaveTheirTrace(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newCallMetrics(registry)
	id, err := trace.TraceIDFromHex("4bf92f3577b34da6a3ce929d0e0e4736")
	if err != nil {
		t.Fatal(err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})
	m.observe(trace.ContextWithSpanContext(context.Background(), span), &gateway.Record{Route: "/a", Dependency: "a", Status: 200, Duration: 300 * time.Millisecond})
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(rec, req)
	if want := `le="0.5"} 1 # {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"}`; !strings.Contains(rec.Body.String(), want) {
		t.Errorf("no exemplar %s in\n%s", want, rec.Body)
	}
}
