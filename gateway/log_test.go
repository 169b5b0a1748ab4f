package gateway_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/gateway"
)

// TestFailuresAreLogged: one line for each call that failed, by the Retryer or by the
// gateway, with its cause, method, route and correlation id, and nothing of the query.
func TestFailuresAreLogged(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, tc := range []struct {
		name, target, method, cause string
		status                      int
	}{
		{"retried", closed.URL, "GET", "connection_refused", 502},
		{"not to be retried", scripted(t, "nonsense\r\n"), "POST", "", 502},
		{"status 099", scripted(t, "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"), "GET", "bad_response", 502},
		{"broken before the first byte", scripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), "GET", "bad_response", 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(gateway.LogHandler(slog.NewJSONHandler(&out, nil)))
			p := quick
			p.MaxRetries = 1
			r, err := forbear.New("upstream", p, forbear.WithObserver(forbear.LogObserver(log, nil)),
				forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "upstream", Reason: "a budget in no test's way"}))
			if err != nil {
				t.Fatal(err)
			}
			g, err := gateway.New(gateway.Config{Logger: log, Routes: []gateway.Route{{Prefix: "/up", Target: parse(t, tc.target), Retryer: r}}})
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(g)
			defer srv.Close()
			got := call(t, tc.method, srv.URL+"/up/a?token=s3cret", http.Header{"X-Correlation-Id": {"c-17"}}, nil)
			if got.StatusCode != tc.status {
				t.Errorf("status %d", got.StatusCode)
			}
			text := strings.TrimSpace(out.String())
			lines := strings.Split(text, "\n")
			var last map[string]any
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if last["route"] != "/up" || last["method"] != tc.method || last["correlation_id"] != "c-17" || last["dependency"] != "upstream" ||
				last["error_type"] == nil || tc.cause != "" && last["error_type"] != tc.cause {
				t.Errorf("the last line is %v", last)
			}
			if strings.Contains(text, "s3cret") {
				t.Errorf("the log has the query: %s", text)
			}
			if n := strings.Count(text, `"msg":"call failed"`) + strings.Count(text, `"reason":`); n != 1 {
				t.Errorf("%d lines say how it ended: %s", n, text)
			}
		})
	}
}

// TestBreakerSaysWhen: the 503 of an open breaker has a Retry-After, not too early.
func TestBreakerSaysWhen(t *testing.T) {
	p := quick
	p.Breaker, p.Budget = breaker.Policy{MinCalls: 5}, budget.Policy{}
	r := retryer(t, p)
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, scripted(t, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")), Retryer: r})
	r.Breaker().Force(breaker.Open, "test", time.Now())
	r.Breaker().Release()
	for range 200 {
		got := get(t, address+"/a")
		if got.Header.Get("Forbear-Stop") != "breaker_open" || got.Header.Get("Forbear-Attempts") != "0" {
			continue
		}
		until := time.Now().Add(r.Breaker().Wait(time.Now()))
		after, err := time.ParseDuration(got.Header.Get("Retry-After") + "s")
		if err != nil || time.Now().Add(after).Before(until) || after > 10*time.Second || got.StatusCode != 503 {
			t.Errorf("%d with Retry-After %q, %v before the next probe", got.StatusCode, got.Header.Get("Retry-After"), time.Until(until))
		}
		return
	}
	t.Error("the breaker never opened")
}
