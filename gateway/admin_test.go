package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/health"
)

// adminOf returns an admin endpoint before one dependency, its Retryer and its
// log.
func adminOf(t *testing.T, token string, p forbear.Policy) (http.Handler, *forbear.Retryer, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	stats := gateway.NewStats("checkout")
	r, err := forbear.New("payments", p, forbear.WithObserver(stats.Observer()), forbear.WithObserver(forbear.LogObserver(logger, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return gateway.NewAdmin(gateway.AdminConfig{Stats: stats, Token: token, Logger: logger}), r, &log
}

func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "http://127.0.0.1:8081"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

const breakers = "/admin/breakers/payments"

func TestOverrideOpensClosesAndGivesBack(t *testing.T) {
	h, r, log := adminOf(t, "", forbear.Policy{})
	good := func(context.Context) error { return nil }
	if w := ask(h, "POST", breakers, `{"state":"open","actor":"jane"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"state":"open","forced":true`) {
		t.Fatalf("open: %d %s", w.Code, w.Body)
	}
	if err := r.Do(t.Context(), good); !errors.Is(err, forbear.ErrBreakerOpen) {
		t.Errorf("a call with the breaker forced open: %v", err)
	}
	if w := ask(h, "POST", breakers, `{"state":"closed","actor":"jane"}`); w.Code != 200 {
		t.Fatalf("closed: %d %s", w.Code, w.Body)
	}
	if err := r.Do(t.Context(), good); err != nil {
		t.Errorf("a call with the breaker forced closed: %v", err)
	}
	if w := ask(h, "POST", breakers, `{"state":"auto","actor":"john"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"forced":false`) {
		t.Errorf("auto: %d %s", w.Code, w.Body)
	}
	for _, want := range []string{`"state":"open","actor":"jane"`, `"state":"closed","actor":"jane"`, `"state":"auto","actor":"john"`, `"new":"open"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}

// The status says why a breaker stands where it does, and from when on it probes.
func TestStatusOfTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, r, _ := adminOf(t, "", forbear.Policy{Disabled: true})
		status := func() string {
			w := ask(h, "GET", "/admin/status", "")
			_, after, _ := strings.Cut(w.Body.String(), `"breaker":`)
			return after[:strings.IndexByte(after, '}')+1]
		}
		check := func(when, want string) {
			t.Helper()
			if got := status(); got != want {
				t.Errorf("%s: got %s, want %s", when, got, want)
			}
		}
		fail := func(context.Context) error { return forbear.Retryable(errors.New("flaky"), forbear.Hint{}) }
		check("at first", `{"state":"closed","forced":false,"failure_rate":0,"budget_exhausted":false}`)
		r.Breaker().BudgetRefused(time.Now())
		check("with a spent budget", `{"state":"closed","forced":false,"failure_rate":0,"budget_exhausted":true}`)
		for range 20 {
			_ = r.Do(t.Context(), fail)
		}
		opened := time.Now()
		since := func(after time.Duration) string {
			return `,"since":"` + opened.Add(after).Format(time.RFC3339Nano) + `"`
		}
		probe := func(after time.Duration) string { return opened.Add(after).Format(time.RFC3339Nano) }
		time.Sleep(time.Second)
		check("open", `{"state":"open","forced":false,"failure_rate":1,"cause":"failures"`+since(0)+`,"budget_exhausted":true,"next_probe":"`+probe(5*time.Second)+`"}`)
		time.Sleep(10 * time.Second)
		check("before the probe", `{"state":"open","forced":false,"failure_rate":1,"cause":"failures"`+since(0)+`,"budget_exhausted":false,"next_probe":"`+probe(11*time.Second)+`"}`)
		_ = r.Do(t.Context(), fail)
		check("after the probe", `{"state":"open","forced":false,"failure_rate":1,"cause":"probe_failed"`+since(11*time.Second)+`,"budget_exhausted":false,"next_probe":"`+probe(16*time.Second)+`"}`)
		w := ask(h, "POST", breakers, `{"state":"closed","actor":"jane"}`)
		if want := `{"state":"closed","forced":true,"failure_rate":0,"cause":"operator"` + since(11*time.Second) + `,"budget_exhausted":false}` + "\n"; w.Body.String() != want {
			t.Errorf("the answer to an override: got %s, want %s", w.Body, want)
		}
		ask(h, "POST", breakers, `{"state":"open","actor":"jane"}`)
		check("held open", `{"state":"open","forced":true,"failure_rate":0,"cause":"operator"`+since(11*time.Second)+`,"budget_exhausted":false}`)
	})
}

// TestStatusOfTheHealthGate holds what the admin endpoint shows of a gate, and that
// it shows nothing of a dependency without one.
func TestStatusOfTheHealthGate(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		policy     forbear.Policy
	}{
		{"limit", `"health":{"healthy":false,"success_rate":0}`, forbear.Policy{Disabled: true, Health: health.Policy{MinSuccess: 0.5}}},
		{"none", "", forbear.Policy{Disabled: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, r, _ := adminOf(t, "", tt.policy)
			for range 20 {
				_ = r.Do(t.Context(), func(context.Context) error { return forbear.Retryable(errors.New("flaky"), forbear.Hint{}) })
			}
			got := ask(h, "GET", "/admin/status", "").Body.String()
			if !strings.Contains(got, tt.want) || strings.Contains(got, `"health"`) != (tt.want != "") {
				t.Errorf("got %s, want %q", got, tt.want)
			}
		})
	}
}

func TestOverrideIsRefused(t *testing.T) {
	const open = `{"state":"open","actor":"jane"}`
	for _, tt := range []struct {
		name, token, path, body string
		header                  []string
		status                  int
	}{
		{"no actor", "", breakers, `{"state":"open"}`, nil, 400},
		{"an actor that breaks lines", "", breakers, `{"state":"open","actor":"x\nlevel=ERROR"}`, nil, 400},
		{"a long actor", "", breakers, `{"state":"open","actor":"` + strings.Repeat("a", 129) + `"}`, nil, 400},
		{"half-open", "", breakers, `{"state":"half-open","actor":"jane"}`, nil, 400},
		{"another field", "", breakers, `{"state":"open","actor":"jane","force":1}`, nil, 400},
		{"two values", "", breakers, open + open, nil, 400},
		{"not JSON", "", breakers, `state=open`, nil, 400},
		{"a long body", "", breakers, `{"state":"` + strings.Repeat("a", 5000) + `"}`, nil, 400},
		{"unknown dependency", "", "/admin/breakers/other", open, nil, 404},
		{"another site", "", breakers, open, []string{"Origin", "https://evil.test"}, 403},
		{"another site, by its own word", "", breakers, open, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a name that was rebound", "", breakers, open, []string{"Host", "evil.test:8081", "Origin", "http://evil.test:8081"}, 403},
		{"no token", "s3cret", breakers, open, nil, 401},
		{"a wrong token", "s3cret", breakers, open, []string{"Authorization", "Bearer s3cre"}, 401},
		{"the token as another scheme", "s3cret", breakers, open, []string{"Authorization", "Basic s3cret"}, 401},
		{"the token, from another site", "s3cret", breakers, open, []string{"Authorization", "Bearer s3cret", "Origin", "https://evil.test"}, 403},
	} {
		h, r, _ := adminOf(t, tt.token, forbear.Policy{})
		w := ask(h, "POST", tt.path, tt.body, tt.header...)
		if w.Code != tt.status || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.status)
		}
		if strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s: the answer holds the token", tt.name)
		}
		if r.Breaker().State() != breaker.Closed || r.Breaker().Forced() {
			t.Errorf("%s: the breaker moved", tt.name)
		}
	}
}

func TestOverrideWithTokenFromAnywhere(t *testing.T) {
	h, r, _ := adminOf(t, "s3cret", forbear.Policy{})
	w := ask(h, "POST", breakers, `{"state":"open","actor":"jane"}`, "Authorization", "Bearer s3cret", "Host", "forbear.internal:8081")
	if w.Code != 200 || r.Breaker().State() != breaker.Open {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestOverrideNeedsABreaker(t *testing.T) {
	h, _, _ := adminOf(t, "", forbear.Policy{Breaker: breaker.Policy{Disabled: true}})
	if w := ask(h, "POST", breakers, `{"state":"open","actor":"jane"}`); w.Code != 409 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestCheckAdmin(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:8081": true, "[::1]:8081": true, "127.8.8.8:1": true,
		":8081": false, "0.0.0.0:8081": false, "10.0.0.1:8081": false, "[::]:8081": false, "example.com:1": false,
	} {
		if err := gateway.CheckAdmin(address, ""); (err == nil) != ok {
			t.Errorf("%s without a token: %v", address, err)
		}
		if err := gateway.CheckAdmin(address, "s3cret-of-sixteen"); err != nil {
			t.Errorf("%s with a token: %v", address, err)
		}
	}
	for _, short := range []string{" ", "s3cret", "                   x"} {
		for _, address := range []string{"127.0.0.1:9090", "0.0.0.0:9090"} {
			if err := gateway.CheckAdmin(address, short); err == nil || !strings.Contains(err.Error(), "at least 16 characters") {
				t.Errorf("%s with %q: %v", address, short, err)
			}
		}
	}
	if err := gateway.CheckAdmin("nowhere", "s3cret-of-sixteen"); err == nil {
		t.Error("an address without a port was accepted")
	}
}

func TestStatusCounts(t *testing.T) {
	h, r, _ := adminOf(t, "", forbear.Policy{MaxConcurrent: 5})
	calls := 0
	_ = r.Do(t.Context(), func(context.Context) error {
		if calls++; calls < 2 {
			return forbear.Retryable(errors.New("flaky"), forbear.Hint{NoBackoff: true})
		}
		return nil
	})
	_ = r.Do(t.Context(), func(context.Context) error { return forbear.Terminal(errors.New("no")) })
	w := ask(h, "GET", "/admin/status", "")
	var got gateway.Status
	if err := json.NewDecoder(io.TeeReader(w.Body, io.Discard)).Decode(&got); err != nil || len(got.Dependencies) != 1 {
		t.Fatalf("got %v: %s", err, w.Body)
	}
	d := got.Dependencies[0]
	if got.Service != "checkout" || d.Dependency != "payments" || d.Initial != 2 || d.Retries != 1 ||
		d.Recovered["retryable_error"] != 1 || d.Failed["terminal_error"] != 1 || d.Budget.Used != 1 || d.Budget.Allowed != 3 ||
		d.Breaker == nil || d.Breaker.State != "closed" || d.Concurrency == nil || d.Concurrency.Available != 5 {
		t.Errorf("got %+v", d)
	}
	if w := ask(h, "GET", "/admin/status", "", "Host", "evil.test"); w.Code != 403 {
		t.Errorf("by a rebound name: %d", w.Code)
	}
	if w := ask(h, "GET", "/nothing", ""); w.Code != 404 {
		t.Errorf("no such page: %d", w.Code)
	}
}

// The labels of metrics are few and plain; the names that an override is asked
// for by are whatever the policy file has.
func TestOverrideFindsEveryDependency(t *testing.T) {
	stats := gateway.NewStats("checkout")
	attach := func(name string) *forbear.Retryer {
		r, err := forbear.New(name, forbear.Policy{}, forbear.WithObserver(stats.Observer()), forbear.WithoutLog())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for i := range 250 {
		attach(fmt.Sprintf("payments-%d", i))
	}
	last := attach("pay ments")
	h := gateway.NewAdmin(gateway.AdminConfig{Stats: stats, Logger: slog.New(slog.DiscardHandler)})
	if w := ask(h, "POST", "/admin/breakers/pay%20ments", `{"state":"open","actor":"jane"}`); w.Code != 200 || last.Breaker().State() != breaker.Open {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if got := stats.Status(time.Now()).Dependencies; len(got) != 251 || got[0].Dependency != "pay ments" {
		t.Errorf("the status has %d dependencies, the first %q", len(got), got[0].Dependency)
	}
}

// What is held is shown though nothing has been sent to it.
func TestHeldIsShown(t *testing.T) {
	stats := gateway.NewStats("checkout")
	stats.SetDeliveries(func(string) *gateway.DeliveryStatus { return &gateway.DeliveryStatus{Hold: "unreadable"} }, func() []string { return []string{"webhook:acme"} })
	got := stats.Status(time.Now()).Dependencies
	if len(got) != 1 || got[0].Dependency != "webhook:acme" || got[0].Delivery.Hold != "unreadable" || got[0].Failed == nil {
		t.Errorf("got %+v", got)
	}
}
