package promretry_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/promretry"
	"github.com/forbear-go/forbear/reason"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// scrape returns what Prometheus would read.
func scrape(t testing.TB, m *promretry.Metrics) string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(m); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func half() float64 { return 0.5 }

func retryer(t testing.TB, m *promretry.Metrics, name string, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	r, err := forbear.New(name, p, append(opts, forbear.WithObserver(m.Observer()), forbear.WithoutLog(), forbear.WithRand(half))...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var errFlaky = errors.New("flaky")

// failing fails n times with an error that may be retried.
func failing(n int) func(context.Context) error {
	return func(context.Context) error {
		if n--; n >= 0 {
			return forbear.Retryable(errFlaky, forbear.Hint{})
		}
		return nil
	}
}

// spent is a budget that grants nothing.
type spent struct{}

func (spent) Request(time.Time)                 {}
func (spent) Spend(time.Time, budget.Cost) bool { return false }
func (spent) Refund(time.Time, budget.Cost)     {}
func (spent) Level(time.Time) budget.Level      { return budget.Level{Used: 1, Allowed: 1} }

type queue struct{}

func (queue) DeadLetter(context.Context, *forbear.Error) error { return nil }
func (queue) Queue() string                                    { return "orders-dlq" }

// story makes every metric move, in virtual time.
func story(t *testing.T, m *promretry.Metrics) {
	newReceiver(t, m).receive() // takes a minute, in which budgets refill
	unlimited := forbear.WithBudget(budget.NewTokenBucket(1<<30, 1))
	ctx := context.Background()
	payments := retryer(t, m, "payments", forbear.Policy{MaxConcurrent: 1})
	for range 20 {
		_ = payments.Do(ctx, failing(0))
	}
	_ = payments.Do(ctx, failing(2)) // two of four retries that the budget allows
	_ = payments.Do(ctx, failing(9)) // refused after the two others
	_ = payments.Do(ctx, failing(9)) // refused at once
	_ = payments.Do(ctx, func(context.Context) error {
		return payments.Do(ctx, failing(0)) // no second place
	})
	search := retryer(t, m, "search", forbear.Policy{Breaker: breaker.Policy{Disabled: true}}, unlimited)
	_ = search.Do(ctx, func(context.Context) error { return x509.UnknownAuthorityError{} })
	_ = search.Do(ctx, failing(9))
	_ = search.Do(ctx, func(context.Context) error { return forbear.Terminal(errFlaky) })
	_ = search.Do(ctx, func(context.Context) error {
		return forbear.Retryable(errFlaky, forbear.Hint{Floor: time.Minute}) // does not fit
	})
	late, cancel := context.WithTimeout(ctx, -1)
	defer cancel()
	_ = search.Do(late, failing(0))
	edge.Refreshed(ctx, search, nil)
	edge.Refreshed(ctx, search, errFlaky)
	orders := retryer(t, m, "orders", forbear.Policy{Kind: forbear.Event}, forbear.WithDeadLetter(queue{}))
	_ = orders.Do(ctx, func(context.Context) error { return forbear.Terminal(errFlaky) })
	mails := retryer(t, m, "mails", forbear.Policy{Kind: forbear.Batch}, forbear.WithBudget(spent{}))
	_ = mails.Do(ctx, failing(0))
	_ = mails.Do(ctx, failing(1)) // a retry that the success before has earned
	down := retryer(t, m, "down", forbear.Policy{Disabled: true})
	for range 20 {
		_ = down.Do(ctx, failing(1))
	}
	_ = down.Do(ctx, failing(0)) // refused
	time.Sleep(5 * time.Second)
	_ = down.Do(ctx, failing(1)) // a probe
	down.Breaker().Force(breaker.Closed, "jane", time.Now())
	down.Breaker().Force(breaker.Open, "jane", time.Now())
	careful := retryer(t, m, "careful", forbear.Policy{Breaker: breaker.Policy{OnBudget: breaker.BudgetOpens}}, forbear.WithBudget(spent{}))
	for range 19 {
		_ = careful.Do(ctx, failing(0))
	}
	_ = careful.Do(ctx, failing(1))
	m.Inbound(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/a", nil))
}

func TestGoldenScrape(t *testing.T) {
	var got string
	synctest.Test(t, func(t *testing.T) {
		m := promretry.New(promretry.WithService("checkout"))
		story(t, m)
		got = scrape(t, m)
	})
	const golden = "testdata/scrape.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the scrape differs from %s (run with -update, and look):\n%s", golden, got)
	}
}

// The figures of the story, by hand rather than by the golden file.
func TestStoryFigures(t *testing.T) {
	var got string
	synctest.Test(t, func(t *testing.T) {
		m := promretry.New(promretry.WithService("checkout"))
		story(t, m)
		got = scrape(t, m)
	})
	for _, want := range []string{
		`retry_initial_requests_total{dependency="payments",service="checkout"} 24`,
		`retry_attempts_total{attempt_number="2",dependency="payments",service="checkout"} 2`,
		`retry_attempts_total{attempt_number="4",dependency="search",service="checkout"} 1`,
		`retry_exhausted_total{dependency="payments",service="checkout"} 0`,
		`retry_exhausted_total{dependency="search",service="checkout"} 2`,
		`retry_budget_exhausted_total{dependency="payments",service="checkout"} 2`,
		`retry_budget_utilization_ratio{dependency="payments",service="checkout"} 1`,
		`retry_success_after_retry_total{dependency="payments",error_type="retryable_error",service="checkout"} 1`,
		`timeout_budget_exhausted_total{dependency="search",service="checkout"} 2`,
		`tls_certificate_errors_total{dependency="search",service="checkout"} 1`,
		`bulkhead_rejections_total{dependency="payments",service="checkout"} 1`,
		`circuit_breaker_state{dependency="down",service="checkout"} 1`,
		`circuit_breaker_calls_total{dependency="down",outcome="not_permitted",service="checkout"} 1`,
		`circuit_breaker_state_transitions_total{dependency="down",from="closed",service="checkout",to="open"} 2`,
		`circuit_breaker_opened_total{cause="failures",dependency="down",service="checkout"} 1`,
		`circuit_breaker_opened_total{cause="probe_failed",dependency="down",service="checkout"} 1`,
		`circuit_breaker_opened_total{cause="operator",dependency="down",service="checkout"} 1`,
		`circuit_breaker_opened_total{cause="budget",dependency="down",service="checkout"} 0`,
		`circuit_breaker_opened_total{cause="budget",dependency="careful",service="checkout"} 1`,
		`circuit_breaker_opened_total{cause="failures",dependency="careful",service="checkout"} 0`,
		`circuit_breaker_budget_exhausted{dependency="careful",service="checkout"} 1`,
		`circuit_breaker_budget_exhausted{dependency="down",service="checkout"} 0`,
		`circuit_breaker_state{dependency="payments",service="checkout"} 0`,
		`circuit_breaker_budget_exhausted{dependency="payments",service="checkout"} 1`,
		`retry_paced_total{dependency="mails",service="checkout"} 1`,
		`retry_paced_total{dependency="orders",service="checkout"} 0`,
		`dlq_messages_total{queue="orders-dlq"} 1`,
		`retry_incoming_requests_total{service="checkout"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("the scrape lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestScrapePassesTheLinter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promretry.New()
		story(t, m)
		problems, err := testutil.CollectAndLint(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// Whatever an operation calls its failures, and however many dependencies
// there are, the number of series is bounded and no foreign text is a label.
func TestCardinalityIsBounded(t *testing.T) {
	m := promretry.New()
	o, ctx := m.Observer(), context.Background()
	evil := []string{
		"https://pay.test/charge?token=s3cr3t", "Bearer abc", "4111 1111 1111 1111", "jane@example.com",
		"dial tcp 10.0.0.1: refused", strings.Repeat("a", 65), "", "a\nb", "k=v",
	}
	for i := range 5000 {
		name := fmt.Sprintf("dependency-%d", i)
		if i < len(evil) {
			name = evil[i]
		}
		info := forbear.Info{Dependency: name, Attempt: i}
		f := forbear.Failure{Class: forbear.ClassTransient, Type: name}
		o.AttemptEnded(ctx, forbear.AttemptEnded{Info: info, Failure: f})
		info.Dependency = "one"
		o.AttemptEnded(ctx, forbear.AttemptEnded{Info: info, Failure: f})
		o.Stopped(ctx, forbear.Stopped{Info: info, Failure: f, Attempts: i + 1, Reason: reason.Exhausted})
		o.Succeeded(ctx, forbear.Succeeded{Info: forbear.Info{Dependency: "one", Attempt: 2}, FailedBefore: name})
		o.DeadLettered(ctx, forbear.DeadLettered{Queue: name})
	}
	got := scrape(t, m)
	for _, e := range evil {
		if e != "" && strings.Contains(got, `"`+e+`"`) {
			t.Errorf("%q is a label", e)
		}
	}
	// 201 dependencies with some 80 series each, and what "one" has.
	if n := strings.Count(got, "\n"); n > 40_000 {
		t.Errorf("%d series", n)
	}
	if n := strings.Count(got, "retry_failed_calls_total{"); n > 201 {
		t.Errorf("%d error types", n)
	}
	if n := strings.Count(got, `retry_attempts_total{attempt_number="`); n > 15*202 || !strings.Contains(got, `attempt_number="16+"`) {
		t.Errorf("%d attempt numbers", n)
	}
}

func TestLogStaysOnBesideMetrics(t *testing.T) {
	var log bytes.Buffer
	m := promretry.New()
	r, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(m.Observer()))
	if err != nil {
		t.Fatal(err)
	}
	restore := redirectDefault(&log)
	defer restore()
	_ = r.Do(t.Context(), func(context.Context) error { return x509.UnknownAuthorityError{} })
	if !strings.Contains(log.String(), "ERROR") {
		t.Errorf("nothing was logged: %q", &log)
	}
}

// A Configure replaces the Retryer of a dependency: one set of gauges remains.
func TestLaterRetryerReplacesTheFirst(t *testing.T) {
	m := promretry.New()
	retryer(t, m, "payments", forbear.Policy{})
	retryer(t, m, "payments", forbear.Policy{Budget: budget.Policy{Ratio: 0.1}})
	got := scrape(t, m)
	if want := "retry_budget_limit_ratio{dependency=\"payments\",service=\"\"} 0.10000000000000009\n"; !strings.Contains(got, want) {
		t.Errorf("want %s in\n%s", want, got)
	}
}
