package otelretry_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// What the alert on retry storms divides by.
func TestIncomingRequestsAreCounted(t *testing.T) {
	const name = "retry_incoming_requests_total{service=checkout}"
	r := newRig(t)
	if v, ok := r.values(t)[name]; !ok || v != 0 {
		t.Errorf("at first: %v (%v), want 0", v, ok)
	}
	var inside bool
	h := r.obs.Inbound(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		a, ok := forbear.AttemptFrom(req.Context())
		inside = ok && a.Number == 2
	}))
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("X-Retry-Attempt", "1")
	h.ServeHTTP(httptest.NewRecorder(), req)
	r.obs.CountIncoming(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if v := r.values(t)[name]; v != 2 || !inside {
		t.Errorf("counted %v of 2; Inbound told the handler of its attempt: %v", v, inside)
	}
}

// What the alert on the retry ratio allows besides.
func TestBudgetFloor(t *testing.T) {
	r := newRig(t)
	p := quick
	p.Budget = budget.Policy{MinRetries: 6, Window: 30 * time.Second}
	if _, err := forbear.New("payments", p, forbear.WithObserver(r.obs.Observer()), forbear.WithoutLog()); err != nil {
		t.Fatal(err)
	}
	if v, ok := r.values(t)["retry_budget_floor_retries_per_second{dependency=payments,service=checkout}"]; !ok || v != 0.2 {
		t.Errorf("got %v (%v), want 0.2", v, ok)
	}
}

// Dashboards and alerts fit both: every series that promretry's golden scrape
// has is here, under its name.
func TestNamesAreThoseOfPromretry(t *testing.T) {
	scrape, err := os.ReadFile("../promretry/testdata/scrape.txt")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	files, _ := filepath.Glob("*.go")
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && !strings.HasSuffix(f, "_test.go") {
			sources.Write(text)
		}
	}
	names := regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(string(scrape), -1)
	if len(names) < 20 {
		t.Fatalf("only %d series in the golden scrape", len(names))
	}
	for _, n := range names {
		if !strings.Contains(sources.String(), `"`+n[1]+`"`) {
			t.Errorf("%s is missing", n[1])
		}
	}
}
