package gateway_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// problem is what the gateway itself answers.
type problem struct {
	Type, Title, Detail, Instance, Dependency, Reason, Rule string

	Status        int
	CorrelationID string `json:"correlation_id"`
	ErrorType     string `json:"error_type"`
	Attempts      int
}

func readProblem(t *testing.T, a answer) (p problem) {
	t.Helper()
	if ct := a.Header.Get("Content-Type"); ct != "application/problem+json" {
		t.Fatalf("got %d %s: %q, want problem details", a.StatusCode, ct, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	if p.Type == "" || p.Title == "" || p.Detail == "" || p.Status != a.StatusCode || p.CorrelationID == "" ||
		p.CorrelationID != a.Header.Get("X-Correlation-ID") {
		t.Errorf("incomplete problem %+v", p)
	}
	return p
}

func TestProblems(t *testing.T) {
	// A port that the system gives to no one else meanwhile.
	closed := "http://127.0.0.1:" + strconv.Itoa(porttest.Free(t))
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(slow.Close)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	t.Cleanup(secure.Close)

	hasty := quick
	hasty.PerAttempt, hasty.MaxRetries = 50*time.Millisecond, 1
	strict := quick
	strict.Strict, strict.Budget = true, budget.Policy{}
	address := start(
		t,
		gateway.Route{Prefix: "/closed", Target: parse(t, closed), Retryer: retryer(t, quick)},
		gateway.Route{Prefix: "/strict", Target: parse(t, closed), Retryer: retryer(t, strict)},
		gateway.Route{Prefix: "/slow", Target: parse(t, slow.URL), Retryer: retryer(t, hasty)},
		gateway.Route{Prefix: "/secure", Target: parse(t, secure.URL), Retryer: retryer(t, quick)},
	)
	soon := strconv.FormatInt(time.Now().Add(400*time.Millisecond).UnixMilli(), 10)
	for _, tt := range []struct {
		name, path string
		header     http.Header
		want       problem
	}{
		{"refused", "/closed/a?token=s3cret", nil, problem{Status: 502, Reason: "exhausted", Rule: "R-2", ErrorType: "connection_refused", Attempts: 4}},
		{"budget", "/strict/a", nil, problem{Status: 502, Reason: "budget_exhausted", Rule: "R-7", ErrorType: "connection_refused", Attempts: 1}},
		{"timeout", "/slow/a", nil, problem{Status: 504, Reason: "exhausted", Rule: "R-2", ErrorType: "timeout", Attempts: 2}},
		{"certificate", "/secure/a", nil, problem{Status: 502, Reason: "tls_certificate", Rule: "R-9", ErrorType: "tls_certificate", Attempts: 1}},
		{"retrying caller", "/closed/a", http.Header{"X-Retry-Attempt": {"1"}}, problem{Status: 502, Reason: "inner_layer", Rule: "R-7", ErrorType: "connection_refused", Attempts: 1}},
		{"Envoy's first attempt", "/strict/a", http.Header{"X-Envoy-Attempt-Count": {"1"}}, problem{Status: 502, Reason: "budget_exhausted", Rule: "R-7", ErrorType: "connection_refused", Attempts: 1}},
		{"retrying Envoy", "/closed/a", http.Header{"X-Envoy-Attempt-Count": {"2"}}, problem{Status: 502, Reason: "inner_layer", Rule: "R-7", ErrorType: "connection_refused", Attempts: 1}},
		{"retrying caller of gRPC", "/closed/a", http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}}, problem{Status: 502, Reason: "inner_layer", Rule: "R-7", ErrorType: "connection_refused", Attempts: 1}},
		{"no route", "/none/a?token=s3cret", nil, problem{Status: 404}},
		{"dots", "/closed/%2e%2e/a", nil, problem{Status: 400}},
		{"late", "/closed/a", http.Header{"X-Request-Deadline": {"1000"}}, problem{Status: 504}},
		{"caller's deadline", "/slow/b", http.Header{"X-Request-Deadline": {soon}}, problem{Status: 504}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := readProblem(t, call(t, http.MethodGet, address+tt.path, tt.header, nil))
			if tt.name == "late" && !strings.Contains(got.Detail, "ago by this server's clock") {
				t.Errorf("detail %q does not say by how much the deadline has passed", got.Detail)
			}
			path, _, _ := strings.Cut(tt.path, "?")
			if got.Instance != path {
				t.Errorf("instance %q, want %q", got.Instance, path)
			}
			if got.Status != tt.want.Status {
				t.Errorf("status %d, want %d (%+v)", got.Status, tt.want.Status, got)
			}
			if tt.want.Reason != "" && (got.Reason != tt.want.Reason || got.Rule != tt.want.Rule ||
				got.ErrorType != tt.want.ErrorType || got.Attempts != tt.want.Attempts || got.Dependency != "upstream") {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestLateCaller: a caller whose deadline has passed is told not to try again, and a
// transport of forbear's takes it for the caller's own deadline.
func TestLateCaller(t *testing.T) {
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, "http://127.0.0.1:1"), Retryer: retryer(t, quick)})
	got := call(t, http.MethodGet, address+"/a", http.Header{"X-Request-Deadline": {"1000"}}, nil)
	if stop := got.Header.Get("X-Forbear-No-Retry"); got.StatusCode != 504 || stop != "deadline" {
		t.Errorf("%d with X-Forbear-No-Retry %q, want 504 and deadline", got.StatusCode, stop)
	}
	got = call(t, http.MethodGet, address+"/a", nil, nil)
	if stop := got.Header.Get("X-Forbear-No-Retry"); got.StatusCode != 502 || stop != "" {
		t.Errorf("%d with X-Forbear-No-Retry %q, want 502 without", got.StatusCode, stop)
	}
}

func TestNoSecretInProblems(t *testing.T) {
	closed := "http://127.0.0.1:" + strconv.Itoa(porttest.Free(t))
	address := start(t, gateway.Route{Prefix: "/up", Target: parse(t, closed), Retryer: retryer(t, quick)})
	for _, path := range []string{"/up/a?token=s3cret", "/none?token=s3cret"} {
		got := call(t, http.MethodGet, address+path, http.Header{"Authorization": {"Bearer s3cret"}}, nil)
		var text strings.Builder
		text.WriteString(got.body)
		for k, v := range got.Header {
			text.WriteString(k + strings.Join(v, " "))
		}
		if strings.Contains(text.String(), "s3cret") || strings.Contains(text.String(), strings.TrimPrefix(closed, "http://")) {
			t.Errorf("%s: the answer gives away too much: %s", path, text.String())
		}
	}
}
