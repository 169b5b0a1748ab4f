package gateway_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway"
)

// watched returns Stats, their admin endpoint, and what makes dependencies that they observe.
func watched(t testing.TB) (*gateway.Stats, http.Handler, func(name string, p forbear.Policy) *forbear.Retryer) {
	stats := gateway.NewStats("checkout")
	admin := gateway.NewAdmin(gateway.AdminConfig{
		Stats: stats, Logger: slog.New(slog.DiscardHandler), Policy: func(p forbear.Policy) string { return "kind: " + p.Kind.String() },
	})
	return stats, admin, func(name string, p forbear.Policy) *forbear.Retryer {
		t.Helper()
		r, err := forbear.New(name, p, forbear.WithObserver(stats.Observer()), forbear.WithoutLog(), forbear.WithCallerDeadLetter(),
			forbear.WithBudget(budget.NewTokenBucket(1<<30, 1)), forbear.WithRand(func() float64 { return 0.5 }))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// quietBreaker is a policy whose breaker does not get in the way.
var quietBreaker = forbear.Policy{Breaker: breaker.Policy{Disabled: true}}

func detail(t *testing.T, h http.Handler, name string) (d gateway.DependencyDetail) {
	t.Helper()
	w := ask(h, "GET", "/admin/dependencies/"+name, "")
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// flaky fails the first n times.
func flaky(n int, kind string) func(context.Context) error {
	return func(context.Context) error {
		if n--; n >= 0 {
			return forbear.Retryable(errors.New("secret of "+kind), forbear.Hint{})
		}
		return nil
	}
}

func TestDetailShowsTheAttemptsOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, made := watched(t)
		r, began := made("pay ments/eu", quietBreaker), time.Now()
		ctx := forbear.WithCorrelationID(t.Context(), "order-7\x1b")
		_ = r.Do(ctx, flaky(9, "a"))
		failed := time.Now()
		_ = r.Do(ctx, flaky(1, "b"))
		_ = r.Do(ctx, flaky(0, "c"))
		d := detail(t, h, "pay%20ments%2Feu")
		if len(d.Calls) != 2 || d.Dependency != "pay ments/eu" || d.Policy != "kind: sync" {
			t.Fatalf("got %+v", d)
		}
		saved, lost := d.Calls[0], d.Calls[1]
		if saved.Outcome != "saved" || saved.Made != 2 || len(saved.Attempts) != 1 || saved.Attempts[0].Wait != gateway.Duration(500*time.Millisecond) {
			t.Errorf("saved: got %+v", saved)
		}
		if lost.Outcome != "failed" || lost.Reason != "exhausted" || lost.Rule != "R-2" || lost.Why != "retries exhausted" || lost.Made != 4 ||
			len(lost.Attempts) != 4 || lost.CorrelationID != "order-7" || !lost.At.Equal(failed) || lost.Elapsed != gateway.Duration(failed.Sub(began)) {
			t.Errorf("failed: got %+v", lost)
		}
		for i, a := range lost.Attempts {
			wait, reason := gateway.Duration(500*time.Millisecond<<i), "retryable"
			if i == 3 {
				wait, reason = 0, "exhausted"
			}
			if a.Number != i+1 || a.Wait != wait || a.Reason != reason || a.ErrorType != "retryable_error" || a.At.Before(began) {
				t.Errorf("attempt %d: got %+v", i+1, a)
			}
		}
		if body := ask(h, "GET", "/admin/dependencies/pay%20ments%2Feu", "").Body.String(); strings.Contains(body, "secret") {
			t.Errorf("the error's text is shown: %s", body)
		}
	})
}

// Calls that run at once under one correlation id keep their own attempts.
func TestConcurrentCallsKeepTheirAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, made := watched(t)
		r, ctx := made("payments", quietBreaker), forbear.WithCorrelationID(t.Context(), "order-7")
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				n := 1 + i%3
				_ = r.Do(ctx, func(context.Context) error {
					if n--; n >= 0 {
						time.Sleep(time.Duration(i+1) * time.Millisecond)
						return forbear.Retryable(errors.New("no"), forbear.Hint{})
					}
					return nil
				})
			})
		}
		wg.Wait()
		seen := map[int]int{}
		for _, c := range detail(t, h, "payments").Calls {
			for _, a := range c.Attempts {
				if a.Took != c.Attempts[0].Took || len(c.Attempts) != c.Made-1 {
					t.Errorf("mixed up: %+v", c)
				}
			}
			seen[len(c.Attempts)]++
		}
		if seen[1] != 3 || seen[2] != 3 || seen[3] != 2 {
			t.Errorf("got %v", seen)
		}
	})
}

// Neither outcome pushes the other out, and a dependency that fails all the time pushes out
// none of another.
func TestCallsAreBoundedByOutcomeAndInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, made := watched(t)
		count := func(name string) (failed, saved int) {
			for _, c := range detail(t, h, name).Calls {
				if c.Outcome == "saved" {
					saved++
				} else {
					failed++
				}
			}
			return failed, saved
		}
		busy, first := made("busy", quietBreaker), made("first", quietBreaker)
		_ = first.Do(t.Context(), flaky(1, "a"))
		for range 20 {
			_ = busy.Do(t.Context(), flaky(1, "a"))
		}
		for range 5000 {
			_ = busy.Do(t.Context(), func(context.Context) error { return forbear.Terminal(errors.New("no")) })
		}
		if failed, saved := count("busy"); failed != 16 || saved != 16 {
			t.Errorf("busy: %d failed and %d saved, want 16 of each", failed, saved)
		}
		if _, saved := count("first"); saved != 1 {
			t.Errorf("first: %d saved, want 1", saved)
		}
		for i := range 256 { // 4,096 calls
			r := made(fmt.Sprint("other-", i), quietBreaker)
			for range 16 {
				_ = r.Do(t.Context(), func(context.Context) error { return forbear.Terminal(errors.New("no")) })
			}
		}
		for name, want := range map[string]int{"busy": 0, "first": 0, "other-0": 16, "other-255": 16} {
			if failed, saved := count(name); failed+saved != want {
				t.Errorf("%s: %d calls, want %d", name, failed+saved, want)
			}
		}
	})
}

// An attempt of durable work is shown at once, with the wait before the next; a refusal of
// the moment, too, and one that comes without an attempt is not.
func TestDetailShowsDurableWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, made := watched(t)
		r := made("webhook:ep_1", forbear.Policy{Kind: forbear.Webhook})
		work := func(p edge.Progress) *edge.DurableCall { return edge.Durable(t.Context(), r, p) }
		call := work(edge.Progress{})
		call.Ask(t.Context(), time.Now())
		d := call.Fail(t.Context(), forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, time.Second, time.Now())
		next := work(call.Progress)
		next.Ask(t.Context(), time.Now())
		r.Breaker().Force(breaker.Open, "jane", time.Now())
		time.Sleep(time.Second)
		refused := next.Fail(t.Context(), forbear.Failure{Class: forbear.ClassTransient, Type: "http_502"}, time.Second, time.Now())
		next.Postpone(t.Context(), refused, time.Now())
		later := work(next.Progress)
		later.Postpone(t.Context(), later.Ask(t.Context(), time.Now()), time.Now())
		calls := detail(t, h, "webhook:ep_1").Calls
		if len(calls) != 2 {
			t.Fatalf("got %+v", calls)
		}
		if c := calls[1]; c.Outcome != "retrying" || c.Made != 1 || c.Attempts[0].ErrorType != "http_503" || c.Attempts[0].Wait != gateway.Duration(d.Wait) || d.Wait == 0 {
			t.Errorf("got %+v", c)
		}
		if c := calls[0]; c.Outcome != "postponed" || c.Reason != "breaker_open" || c.Made != 2 || c.Why != "circuit breaker open: held open by an operator" {
			t.Errorf("got %+v", c)
		}
	})
}

// A delivery that is retried for days is no call that has failed yet, and its attempts are
// hours apart: the endpoint is in trouble all the same, until an attempt succeeds.
func TestDurableWorkThatFailsIsTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, made := watched(t)
		r := made("webhook:ep_1", forbear.Policy{Kind: forbear.Webhook})
		call := edge.Durable(t.Context(), r, edge.Progress{})
		fail := func() {
			call.Ask(t.Context(), time.Now())
			call.Fail(t.Context(), forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, time.Second, time.Now())
			call = edge.Durable(t.Context(), r, call.Progress)
		}
		trouble := func(want string) {
			t.Helper()
			if got := detail(t, h, "webhook:ep_1").Trouble.Why; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		trouble("")
		fail()
		trouble("1 of 1 attempts failed in 5 minutes")
		time.Sleep(time.Hour)
		fail()
		trouble("the last 2 attempts failed")
		time.Sleep(9 * time.Hour)
		trouble("the last 2 attempts failed")
		call.Ask(t.Context(), time.Now())
		call.Succeed(t.Context(), time.Second, time.Now())
		trouble("")
	})
}

// A consumer that goes on with an event has an entry for each attempt, with that alone.
func TestDetailShowsEventsByAttempt(t *testing.T) {
	_, h, made := watched(t)
	r := made("orders", forbear.Policy{Kind: forbear.Event, Breaker: breaker.Policy{Disabled: true}})
	call := edge.Durable(t.Context(), r, edge.Progress{})
	for range 2 {
		call.Fail(t.Context(), forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}, 0, time.Now())
	}
	for i, c := range detail(t, h, "orders").Calls {
		if len(c.Attempts) != 1 || c.Attempts[0].Number != 2-i || c.Made != 2-i {
			t.Errorf("got %+v", c)
		}
	}
}

func TestDetailShowsMovesCertificatesAndLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h, made := watched(t)
		r := made("payments", forbear.Policy{})
		for range 20 {
			r.Breaker().Force(breaker.Open, "jane", time.Now())
			r.Breaker().Force(breaker.Closed, "john", time.Now())
		}
		r.Breaker().Release()
		_ = r.Do(t.Context(), func(context.Context) error { return x509.UnknownAuthorityError{} })
		at := time.Now()
		for _, attempt := range []int{2, 3} {
			edge.Repeated(t.Context(), r, attempt)
		}
		d := detail(t, h, "payments")
		if len(d.Moves) != 32 || d.Moves[0].To != "closed" || d.Moves[0].Actor != "john" || d.Moves[1].To != "open" || d.Moves[1].Cause != "operator" {
			t.Errorf("moves: got %+v", d.Moves)
		}
		if d.Certificate == nil || !d.Certificate.At.Equal(at) || d.Certificate.Why != "the server's certificate is signed by an unknown authority" {
			t.Errorf("certificate: got %+v", d.Certificate)
		}
		if len(d.Layers) != 1 || !d.Layers[0].Above || d.Layers[0].Sends != 2 || !d.Layers[0].Seen.Equal(at) {
			t.Errorf("layers: got %+v", d.Layers)
		}
		if got := d.Calls[0].Attempts[0].Detail; got != d.Certificate.Why {
			t.Errorf("detail: got %q", got)
		}
	})
}

func TestBadQueriesAreRefused(t *testing.T) {
	_, h, made := watched(t)
	made("payments", forbear.Policy{})
	for _, path := range []string{
		"/admin/status?sort=size", "/admin/status?limit=0", "/admin/status?limit=1001", "/admin/status?limit=x", "/admin/status?offset=-1",
		"/admin/status?offset=1000001", "/admin/status?q=" + strings.Repeat("a", 129), "/admin/status?page=2", "/admin/status?q=a&q=b",
		"/admin/status?q=%zz",
	} {
		if w := ask(h, "GET", path, ""); w.Code != 400 || !strings.Contains(w.Body.String(), "bad-query") {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(h, "GET", "/admin/dependencies/other", ""); w.Code != 404 {
		t.Errorf("an unknown dependency: got %d %s", w.Code, w.Body)
	}
	if w := ask(h, "GET", "/admin/status?sort=trouble&q=PAY&limit=1000&offset=0", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"total":1`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestPagesOfAStatus(t *testing.T) {
	stats, _, made := watched(t)
	for i := range 30 {
		made(fmt.Sprintf("payments-%02d", i), forbear.Policy{})
	}
	made("Orders", forbear.Policy{})
	names := func(q gateway.StatusQuery) (names []string, total int) {
		st := stats.Page(time.Now(), q)
		for _, d := range st.Dependencies {
			names = append(names, d.Dependency)
		}
		return names, st.Total
	}
	if got, total := names(gateway.StatusQuery{Offset: 29, Limit: 5}); total != 31 || !slices.Equal(got, []string{"payments-28", "payments-29"}) {
		t.Errorf("got %v of %d", got, total)
	}
	if got, total := names(gateway.StatusQuery{Name: "order"}); total != 1 || !slices.Equal(got, []string{"Orders"}) {
		t.Errorf("got %v of %d", got, total)
	}
	if got, _ := names(gateway.StatusQuery{Only: []string{"payments-03", "none", "Orders"}, ByTrouble: true, Offset: 9, Name: "x"}); !slices.Equal(got, []string{"payments-03", "Orders"}) {
		t.Errorf("only some: %q", got)
	}
	if got, total := names(gateway.StatusQuery{Offset: 1000}); total != 31 || len(got) != 0 {
		t.Errorf("got %v of %d", got, total)
	}
}
