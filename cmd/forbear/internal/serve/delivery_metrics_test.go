package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
	"github.com/forbear-go/forbear/cmd/forbear/internal/top"
	"github.com/forbear-go/forbear/webhook"
)

// Deliveries are seen like all other calls: in /metrics, in what is exported,
// in top, and in the log with R-10's fields. None of that holds a query, a
// secret, a header or a body.
func TestDeliveriesAreVisible(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
		w.Header().Set("X-Debug", secrets["answer"])
		switch {
		case r.URL.Path == "/shaky" && seen[r.URL.Path] == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/refuses":
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
		_, _ = io.WriteString(w, secrets["answer"]+" Bearer "+secrets["bearer token"])
	}))
	defer receiver.Close()
	c := newCollector(t)
	c.export(t)
	admin := closed(t)
	s := startServe(t, "--listen", "127.0.0.1:0", "--admin", strings.TrimPrefix(admin, "http://"), "--log-format", "json",
		"--database", t.TempDir()+"/forbear.db", "--allow-target", "127.0.0.0/8")
	secret := webhook.NewSecret()
	for _, id := range []string{"shaky", "refuses"} {
		post(t, "PUT", s.base+"/v1/endpoints/"+id, fmt.Sprintf(`{"url":"%s/%s?api_key=%s","secrets":[%q],"headers":[{"name":"X-Owner","value":%q}]}`,
			receiver.URL, id, secrets["API key"], secret, secrets["person"]), 200)
		post(t, "POST", s.base+"/v1/messages", fmt.Sprintf(`{"id":"m-%s","endpoint":%q,"payload":{"card":%q},"headers":[{"name":"X-Session","value":%q}]}`,
			id, id, secrets["card number"], secrets["cookie"]), 202)
	}
	wanted := []string{
		`retry_initial_requests_total{dependency="webhook:shaky",`, `retry_initial_requests_total{dependency="webhook:refuses",`,
		`retry_attempts_total{attempt_number="2",dependency="webhook:shaky",`, `retry_backoff_duration_seconds_count{dependency="webhook:shaky",`,
		`retry_success_after_retry_total{dependency="webhook:shaky",error_type="http_503",`, `retry_failed_calls_total{dependency="webhook:refuses",error_type="http_422",reason="terminal",`,
		`retry_budget_utilization_ratio{dependency="webhook:shaky",`, `circuit_breaker_state{dependency="webhook:shaky",`,
		`dlq_messages_total{queue="webhooks"} 1`, `dlq_messages{queue="webhooks",reason="terminal",state="dead"} 1`,
		"webhook_messages_accepted_total 2", "webhook_deliveries_total 1", "webhook_oldest_due_seconds", "webhook_outbox_oldest_seconds 0", `webhook_endpoints{state="enabled"} 2`, "webhook_endpoints_held 0", "webhook_deliveries_unreadable 0", "webhook_endpoints_unreadable 0", `webhook_endpoints_breaker{state="closed"} 2`, `webhook_endpoints_breaker{state="open"} 0`, `alert_notifier_healthy{notifier="log"} 1`, `webhook_part_healthy{part="claims"} 1`,
	}
	page, missing := "", ""
	for range 3000 {
		if page, missing = fetch(t, admin+"/metrics"), ""; true {
			for _, w := range wanted {
				if !strings.Contains(page, w) {
					missing = w
				}
			}
		}
		if missing == "" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if missing != "" {
		t.Fatalf("/metrics has no %s:\n%s", missing, page)
	}
	top := clitest.Run(t, top.Command(), "", "--admin", admin, "--count", "1", "--interval", "100ms")
	if !strings.Contains(top.Out, "dependency=webhook:shaky") || !strings.Contains(top.Out, "http_503=1 saved,0 failed") {
		t.Errorf("top: %+v", top)
	}
	live := fetch(t, admin+"/admin/dependencies/webhook:shaky") + fetch(t, admin+"/admin/dependencies/webhook:refuses")
	for _, want := range []string{
		`"outcome":"retrying","reason":"retryable"`, `"correlation_id":"m-shaky","outcome":"saved"`, `"n":1,`, `"error_type":"http_503"`,
		`"correlation_id":"m-refuses","outcome":"failed","reason":"terminal"`, `"error_type":"http_422"`, `"policy":"kind: webhook\n`,
	} {
		if !strings.Contains(live, want) {
			t.Errorf("the admin endpoint has no %s:\n%s", want, live)
		}
	}
	var shown strings.Builder
	for _, path := range []string{"/v1/endpoints", "/v1/messages/m-shaky", "/v1/dead-letters", "/v1/alerts", "/v1/audit"} {
		shown.WriteString(fetch(t, s.base+path))
	}
	s.stop()
	log := s.log.String()
	for _, field := range []string{`"msg":"retry"`, `"correlation_id":"m-shaky"`, `"dependency":"webhook:shaky"`, `"attempt":2`, `"max_attempts":5`, `"backoff_ms":`, `"error_type":"http_503"`, `"idempotency_key":"m-shaky"`, `"msg":"dead letter"`} {
		if !strings.Contains(log, field) {
			t.Errorf("the log has no %s:\n%s", field, log)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.metrics["retry_attempts_total"] || !strings.Contains(c.raw.String(), "webhook:shaky") || len(c.spans) < 3 {
		t.Errorf("the collector got %d spans and %v", len(c.spans), c.metrics)
	}
	for where, text := range map[string]string{"/metrics": page, "top": top.Out + top.Errors, "the admin endpoint": live, "the log": log, "what was exported": c.raw.String()} {
		leaks(t, where, text)
		if strings.Contains(text, secret) {
			t.Errorf("the signing secret is in %s", where)
		}
	}
	leaks(t, "the API", shown.String())
}

// fetch returns the body of a page.
func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", url, resp.StatusCode, body, err)
	}
	return string(body)
}
