package otelretry_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/storetest/memstore"
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
		n, ok := forbear.AttemptFrom(req.Context())
		inside = ok && n == 2
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

// Dashboards and alerts fit both: every metric that promretry's golden scrape
// has is here, under its name and with its help text.
func TestNamesAreThoseOfPromretry(t *testing.T) {
	scrape, err := os.ReadFile("../promretry/testdata/scrape.txt")
	if err != nil {
		t.Fatal(err)
	}
	help := regexp.MustCompile(`(?m)^# HELP (\w+) (.+)$`).FindAllStringSubmatch(string(scrape), -1)
	if len(help) < 20 {
		t.Fatalf("only %d metrics in the golden scrape", len(help))
	}
	r := newRig(t)
	if _, err := forbear.New("orders", forbear.Policy{Kind: forbear.Event, MaxConcurrent: 1}, forbear.WithCallerDeadLetter(),
		forbear.WithObserver(r.obs.Observer()), forbear.WithoutLog()); err != nil {
		t.Fatal(err)
	}
	// The histograms, and the counters that no dependency has from the start.
	o, ctx, info := r.obs.Observer(), t.Context(), forbear.Info{Dependency: "orders", Attempt: 2}
	o.AttemptEnded(ctx, forbear.AttemptEnded{Info: info, Failure: forbear.Failure{Class: forbear.ClassSuccess}})
	o.RetryScheduled(ctx, forbear.RetryScheduled{Info: info})
	o.Succeeded(ctx, forbear.Succeeded{Info: info, FailedBefore: "http_503"})
	o.Stopped(ctx, forbear.Stopped{Info: info, Attempts: 2, Reason: reason.Budget})
	o.TokenRefreshed(ctx, forbear.TokenRefreshed{Dependency: "orders"})
	r.obs.Idempotency("orders")(idempotency.Event{Result: idempotency.Replayed, Took: 1, Waited: 1})
	r.obs.Consumer("orders")(consume.Event{}, consume.Decision{Action: consume.Ack})
	r.obs.Keys(&memstore.Idempotency{})
	r.obs.Stalled(shippers(t))
	got := map[string]string{}
	for _, m := range r.collect(t) {
		got[m.Name] = m.Description
	}
	for _, h := range help {
		if got[h[1]] != h[2] {
			t.Errorf("%s: got %q, want %q", h[1], got[h[1]], h[2])
		}
	}
}

// A success under OpenTelemetry costs no allocation of ours.
func TestSuccessAllocatesNothing(t *testing.T) {
	r := newRig(t)
	payments := r.retryer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	op := func(context.Context) error { return nil }
	if n := testing.AllocsPerRun(1000, func() { _ = payments.Do(ctx, op) }); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// shippers is a consumer that does nothing.
func shippers(t *testing.T) *consume.Consumer {
	t.Helper()
	c, err := consume.New(func(context.Context, consume.Event) error { return nil }, consume.Options{
		Group: "shippers", Store: &memstore.Idempotency{}, DLQ: noLetters{}, Logger: slog.New(slog.DiscardHandler),
		Retryer: forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter(), forbear.WithoutLog())),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What waits in a store, and what became of requests and events, have the labels
// that promretry gives them.
func TestKeysAndEvents(t *testing.T) {
	r, store := newRig(t), &memstore.Idempotency{}
	c := idempotency.Claim{ID: idempotency.ID{Scope: "ann", Key: "k"}, Fingerprint: "f", Owner: "a", Lease: time.Minute, Retention: time.Hour}
	if _, err := store.Claim(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := store.Hold(t.Context(), idempotency.Token{ID: c.ID, Owner: "a"}, "cut off"); err != nil {
		t.Fatal(err)
	}
	r.obs.Keys(store)
	r.obs.Idempotency("till")(idempotency.Event{Result: idempotency.StoreError, Attempt: 1, Took: time.Second})
	r.obs.Consumer("shippers")(consume.Event{}, consume.Decision{Action: consume.Hold})
	consumer := shippers(t)
	r.obs.Stalled(consumer)
	consumer.Full("kafka:orders/0", 4)
	got := r.values(t)
	for name, want := range map[string]float64{
		"consume_stalled_sources{group=shippers,service=checkout}":                         1,
		"consume_stalled_handlers{group=shippers,service=checkout}":                        0,
		"idempotency_held_keys{kind=request,service=checkout}":                             1,
		"idempotency_held_keys{kind=event,service=checkout}":                               0,
		"idempotency_requests_total{dependency=till,result=outcome_lost,service=checkout}": 1,
		"idempotency_requests_total{dependency=till,result=store_error,service=checkout}":  0,
		"consume_events_total{group=shippers,outcome=held,service=checkout}":               1,
		"consume_events_total{group=shippers,outcome=done,service=checkout}":               0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: got %v (%v), want %v", name, v, ok, want)
		}
	}
}
