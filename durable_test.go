package forbear_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

// webhooks returns a Retryer of a durable kind whose budget allows one retry in
// each window.
func webhooks(t *testing.T, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	p := forbear.Policy{Kind: forbear.Webhook, Strict: true}
	return forbear.Must(forbear.New("hooks", p, append(opts, forbear.WithCallerDeadLetter())...))
}

var unavailable = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}

// A failure that waits for its decision is one failure, however often it is
// asked about, and whoever asks: here another process each time.
func TestPendingFailureCountsOnce(t *testing.T) {
	r, now, ctx := webhooks(t, forbear.WithoutLog()), time.Now(), t.Context()
	ask := func(p edge.Progress) (*edge.DurableCall, forbear.Decision) {
		c := edge.Durable(ctx, r, p)
		return c, c.Ask(ctx, now)
	}
	first, _ := ask(edge.Progress{})
	if d := first.Fail(ctx, unavailable, 0, now); !d.Retry {
		t.Fatalf("the floor of one retry was refused: %s", d.Reason)
	}
	late, _ := ask(edge.Progress{})
	if d := late.Fail(ctx, forbear.Failure{Class: forbear.ClassDNS, Type: "dns"}, 0, now); d.Reason != reason.Budget {
		t.Fatalf("got %s, want the budget to be spent", d.Reason)
	}
	for range 100 {
		c, d := ask(stored(t, late.Progress))
		if s := c.State; d.Reason != reason.Budget || s.Attempt != 1 || s.DNSFailures != 1 || c.Attempts != 1 {
			t.Fatalf("got %s with %+v, want it put off and nothing consumed", d.Reason, c.Progress)
		}
	}
	if s := r.Breaker().State(); s != breaker.Closed {
		t.Errorf("two failures opened the breaker: %s", s)
	}
	now = now.Add(31 * time.Second)
	if c, d := ask(stored(t, late.Progress)); !d.Retry || c.State.Attempt != 2 || c.Pending != nil {
		t.Errorf("in the next window: got %s, %+v", d.Reason, c.Progress)
	}
}

// stored returns what another process reads of p.
func stored(t *testing.T, p edge.Progress) (read edge.Progress) {
	t.Helper()
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// What an open breaker has put off is let through later, as a probe.
func TestDurableBehindAnOpenBreaker(t *testing.T) {
	r, now, ctx := webhooks(t, forbear.WithoutLog()), time.Now(), t.Context()
	var c *edge.DurableCall
	for range 20 {
		c = edge.Durable(ctx, r, edge.Progress{})
		if d := c.Ask(ctx, now); d.Retry {
			c.Fail(ctx, unavailable, 0, now)
		}
	}
	d := c.Ask(ctx, now)
	if d.Reason != reason.BreakerOpen {
		t.Fatalf("got %s, want an open breaker", d.Reason)
	}
	if wait := c.Postpone(ctx, d, now); wait < 5*time.Second || wait > 6250*time.Millisecond {
		t.Errorf("put off for %v, want the five seconds of the breaker and up to a quarter more", wait)
	}
	now = now.Add(time.Minute)
	if d := c.Ask(ctx, now); !d.Retry || d.Wait != 0 || c.Timeout(now) != 5*time.Second {
		t.Fatalf("after the wait: %s, %v for the attempt; want a probe with half of the time", d.Reason, c.Timeout(now))
	}
	if c.Succeed(ctx, time.Millisecond, now); r.Breaker().State() != breaker.HalfOpen {
		t.Errorf("one good probe of five: %s", r.Breaker().State())
	}
}

// Refusals spread and grow, and never come before the server's own wait is over.
func TestPostponeGrows(t *testing.T) {
	r, now, ctx := webhooks(t, forbear.WithoutLog(), forbear.WithRand(func() float64 { return 0.999 })), time.Now(), t.Context()
	for range 2 { // the second is beyond the floor of one retry
		c := edge.Durable(ctx, r, edge.Progress{})
		c.Ask(ctx, now)
		d := c.Fail(ctx, unavailable, 0, now)
		if d.Retry {
			continue
		}
		for n, most := range []time.Duration{3, 5, 9, 17} {
			if wait := c.Postpone(ctx, d, now); wait <= most*time.Second*9/10 || wait > most*time.Second {
				t.Errorf("refusal %d: put off for %v, want nearly %v s", n+1, wait, most)
			}
		}
		if c.Postponed != 4 || c.Pending.Refused != 4 {
			t.Errorf("got %+v", c.Progress)
		}
		c.Pending.Until = now.Add(time.Hour)
		if wait := c.Postpone(ctx, d, now); wait != time.Hour {
			t.Errorf("put off for %v, want the hour that the server asked for (R-5)", wait)
		}
	}
}

// durableEvents writes down what it is told.
type durableEvents struct{ log []string }

func (o *durableEvents) note(format string, args ...any) {
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

func (o *durableEvents) AttemptEnded(_ context.Context, e forbear.AttemptEnded) {
	o.note("%s", strings.TrimSpace(fmt.Sprintf("attempt %d of %d %q %.1s", e.Attempt, e.MaxAttempts, e.Failure.Type, e.CorrelationID)))
}

func (o *durableEvents) RetryScheduled(_ context.Context, e forbear.RetryScheduled) {
	o.note("retry %d %s", e.Attempt, e.IdempotencyKey)
}

func (o *durableEvents) Stopped(_ context.Context, e forbear.Stopped) {
	o.note("stopped %s after %d", e.Reason, e.Attempts)
}

func (o *durableEvents) Succeeded(_ context.Context, e forbear.Succeeded) {
	o.note("done %d after %s", e.Attempt, e.FailedBefore)
}

// A durable call reports what a live one does, with the names that it was given.
func TestDurableCallsAreObserved(t *testing.T) {
	o := &durableEvents{}
	r, now := webhooks(t, forbear.WithObserver(o.observer())), time.Now()
	ctx := forbear.WithCorrelationID(t.Context(), "c")
	call := func(p edge.Progress) *edge.DurableCall {
		p.State.NeedsKey, p.State.Key = true, "k"
		c := edge.Durable(ctx, r, p)
		c.Ask(ctx, now)
		return c
	}
	c := call(edge.Progress{})
	c.Fail(ctx, unavailable, time.Second, now)
	c = call(c.Progress) // another process, which has nothing to refund
	c.Postpone(ctx, c.Fail(ctx, unavailable, time.Second, now), now)
	c.Ask(ctx, now) // still refused, and not put off once more
	now = now.Add(31 * time.Second)
	c.Ask(ctx, now)
	now = now.Add(time.Minute)
	c = call(c.Progress)
	c.Succeed(ctx, time.Second, now)
	c = call(edge.Progress{})
	c.Fail(ctx, forbear.Failure{Class: forbear.ClassCertificate, Type: "certificate"}, time.Second, now)
	want := []string{
		`attempt 1 of 5 "http_503" c`, "retry 2 k",
		`attempt 2 of 5 "http_503" c`, "stopped budget_exhausted after 0", "retry 3 k",
		`attempt 3 of 5 "" c`, "done 3 after http_503",
		`attempt 1 of 5 "certificate" c`, "stopped tls_certificate after 1",
	}
	if got := fmt.Sprint(o.log); got != fmt.Sprint(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func (o *durableEvents) observer() *forbear.Observer {
	return &forbear.Observer{AttemptEnded: o.AttemptEnded, RetryScheduled: o.RetryScheduled, Stopped: o.Stopped, Succeeded: o.Succeeded}
}

// A retry that is taken back is as if it had not been granted: the one refresh of
// a token is still to come. A call that was never let in has taken no time.
func TestTakenBackIsNotCounted(t *testing.T) {
	o := &durableEvents{}
	r, now, ctx := webhooks(t, forbear.WithObserver(o.observer())), time.Now(), t.Context()
	c := edge.Durable(ctx, r, edge.Progress{State: forbear.State{Refreshable: true}})
	c.Ask(ctx, now)
	denied := forbear.Failure{Class: forbear.ClassUnauthorized, Type: "http_401"}
	if d := c.Fail(ctx, denied, 0, now); d.Reason != reason.Refresh {
		t.Fatalf("got %s, want a refresh", d.Reason)
	}
	r.Breaker().Force(breaker.Open, "ada", now)
	if d := c.Ask(ctx, now); d.Reason != reason.BreakerOpen || c.State.Refreshes != 0 || c.State.Attempt != 1 {
		t.Fatalf("behind an open breaker: %s, %+v", d.Reason, c.State)
	}
	late := edge.Durable(ctx, r, edge.Progress{})
	if e := late.GiveUp(ctx, reason.Canceled, now); e.Elapsed != 0 {
		t.Errorf("a call that was never let in took %v", e.Elapsed)
	}
	r.Breaker().Force(breaker.Closed, "ada", now)
	if d := c.Ask(ctx, now); !d.Retry || c.State.Refreshes != 1 {
		t.Errorf("when it is closed: %s, %+v", d.Reason, c.State)
	}
}

// The log calls a retry that durable work makes later postponed: it has not stopped.
func TestPostponedRetryInTheLog(t *testing.T) {
	var log strings.Builder
	r, now := webhooks(t, forbear.WithObserver(forbear.LogObserver(slog.New(slog.NewTextHandler(&log, nil)), nil))), time.Now()
	c := edge.Durable(t.Context(), r, edge.Progress{})
	c.Ask(t.Context(), now)
	c.Fail(t.Context(), unavailable, time.Second, now)
	c.Ask(t.Context(), now)
	c.Postpone(t.Context(), c.Fail(t.Context(), unavailable, time.Second, now), now)
	if got := log.String(); !strings.Contains(got, `msg="retry postponed"`) || !strings.Contains(got, "reason=budget_exhausted") || strings.Contains(got, "retries stopped") {
		t.Errorf("the log: %s", got)
	}
}
