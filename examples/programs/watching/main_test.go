package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

const page = "../../../docs/guides/metrics-and-traces.md"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// receiver takes spans over OTLP.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
}

func newReceiver(t *testing.T) *receiver {
	c := &receiver{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var req collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err != nil || proto.Unmarshal(body, &req) != nil {
			t.Errorf("%s: unreadable: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range req.ResourceSpans {
			for _, s := range rs.ScopeSpans {
				c.spans = append(c.spans, s.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// The program runs, its metrics are those of the dashboard
// and its spans those of the guide's picture.
func TestGuide(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "watching")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	traces, address := newReceiver(t), free(t)
	var log bytes.Buffer
	cmd := exec.Command(binary, address)
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+traces.URL)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	metrics := drive(t, "http://"+address)
	_ = cmd.Process.Signal(os.Interrupt) // which sends the spans that are left
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	for _, name := range []string{"retry_initial_requests_total", "retry_attempts_total", "retry_success_after_retry_total", "retry_budget_utilization_ratio", "circuit_breaker_state"} {
		if !strings.Contains(metrics, "\n"+name+"{") {
			t.Errorf("/metrics has no %s", name)
		}
	}
	retried, logged := picture(t, traces), false
	for _, m := range regexp.MustCompile(`correlation_id=(\w+)`).FindAllStringSubmatch(log.String(), -1) {
		again, known := retried[m[1]] // the budget may have refused a retry
		if logged = logged || again; !known {
			t.Errorf("the log names %s, which is no trace", m[1])
		}
	}
	if !logged {
		t.Errorf("no trace with a retry, or none in the log:\n%s", log.String())
	}
}

// drive calls the service until its metrics show that a retry has saved a call, and
// returns them.
func drive(t *testing.T, base string) (metrics string) {
	t.Helper()
	get := func(path string) string {
		resp, err := http.Get(base + path)
		if err != nil {
			return ""
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	for range 1500 {
		if get("/checkout") == "" {
			time.Sleep(20 * time.Millisecond) // it is still starting, or the call failed
		}
		if metrics = get("/metrics"); strings.Contains(metrics, "\nretry_success_after_retry_total{") {
			return metrics
		}
	}
	t.Fatal("no retry has saved a call")
	return ""
}

// picture holds the spans to "GET /checkout" over "GET call" over one "GET" for each
// attempt, and returns the ids of the traces, and whether each has a retry.
func picture(t *testing.T, c *receiver) (retried map[string]bool) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]string{"": ""}
	for _, s := range c.spans {
		names[string(s.SpanId)] = s.Name
	}
	retried = map[string]bool{}
	for _, s := range c.spans {
		id := fmt.Sprintf("%x", s.TraceId)
		if _, known := retried[id]; !known {
			retried[id] = false
		}
		want := map[string]string{"GET /checkout": "", "GET call": "GET /checkout", "GET": "GET call"}
		if above, ok := want[s.Name]; !ok || names[string(s.ParentSpanId)] != above {
			t.Errorf("span %q below %q", s.Name, names[string(s.ParentSpanId)])
		}
		for _, kv := range s.Attributes {
			if kv.Key == "http.request.resend_count" {
				retried[id] = true
			}
		}
	}
	return retried
}

// free returns an address that is free at the moment.
func free(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(porttest.Free(t)))
}

// Prometheus reads the guide's configuration, with the rules that it names.
func TestPrometheusReadsTheConfiguration(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is missing: sudo apt-get install prometheus")
		}
		t.Skip("NOT RUN, promtool is missing: sudo apt-get install prometheus")
	}
	_, config, ok := strings.Cut(read(t, page), "```yaml\n# prometheus.yml\n")
	config, _, _ = strings.Cut(config, "```\n")
	dir := t.TempDir()
	for name, text := range map[string]string{"prometheus.yml": config, "forbear.rules.yml": read(t, "../../../docs/alerts/forbear.rules.yml")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(promtool, "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput(); !ok || err != nil || !strings.Contains(string(out), "1 rule files") {
		t.Errorf("%v\n%s", err, out)
	}
}
