package forbear_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
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
// asked about.
func TestReconsiderCountsAFailureOnce(t *testing.T) {
	r, now := webhooks(t, forbear.WithoutLog()), time.Now()
	var first forbear.State
	if d := r.Next(&first, unavailable, now); !d.Retry {
		t.Fatalf("the floor of one retry was refused: %s", d.Reason)
	}
	late := forbear.State{}
	dns := forbear.Failure{Class: forbear.ClassDNS, Type: "dns"}
	if d := r.Next(&late, dns, now); d.Reason != forbear.ReasonBudget {
		t.Fatalf("got %s, want the budget to be spent", d.Reason)
	}
	for range 100 {
		if d := r.Reconsider(&late, dns, now); d.Reason != forbear.ReasonBudget || late.Attempt != 1 || late.DNSFailures != 1 {
			t.Fatalf("got %s with %+v, want it put off and nothing consumed", d.Reason, late)
		}
	}
	if s := r.Breaker().State(); s != breaker.Closed {
		t.Errorf("two failures opened the breaker: %s", s)
	}
	now = now.Add(31 * time.Second)
	if d := r.Reconsider(&late, dns, now); !d.Retry || late.Attempt != 2 {
		t.Errorf("in the next window: got %s, %+v", d.Reason, late)
	}
}

// What an open breaker has put off is let through by Admit, as a probe.
func TestReconsiderBehindAnOpenBreaker(t *testing.T) {
	r, now := webhooks(t, forbear.WithoutLog()), time.Now()
	s := forbear.State{}
	for range 20 {
		s = forbear.State{}
		if r.Admit(&s, now) == forbear.ReasonNone {
			r.Next(&s, unavailable, now)
		}
	}
	if d := r.Reconsider(&s, unavailable, now); d.Reason != forbear.ReasonBreakerOpen {
		t.Fatalf("got %s, want an open breaker", d.Reason)
	}
	now = now.Add(time.Minute)
	if why := r.Admit(&s, now); why != forbear.ReasonNone || !s.Probe() {
		t.Fatalf("after the wait: %s, probe %v", why, s.Probe())
	}
	if d := r.Reconsider(&s, unavailable, now); !d.Retry {
		t.Fatalf("the probe was refused: %s", d.Reason)
	}
	if r.Succeeded(&s, time.Millisecond, now); r.Breaker().State() != breaker.HalfOpen {
		t.Errorf("one good probe of five: %s", r.Breaker().State())
	}
}

// durableEvents writes down what it is told.
type durableEvents struct{ log []string }

func (o *durableEvents) note(format string, args ...any) {
	o.log = append(o.log, fmt.Sprintf(format, args...))
}

func (o *durableEvents) AttemptEnded(_ context.Context, e forbear.AttemptEnded) {
	o.note("attempt %d of %d %q", e.Attempt, e.MaxAttempts, e.Failure.Type)
}

func (o *durableEvents) RetryScheduled(_ context.Context, e forbear.RetryScheduled) {
	o.note("retry %d %s", e.Attempt, e.IdempotencyKey)
}

func (o *durableEvents) Stopped(_ context.Context, e forbear.Stopped) {
	o.note("stopped %s after %d", e.Reason, e.Attempts)
}

func (o *durableEvents) BudgetLevel(_ context.Context, e forbear.BudgetLevel) {
	o.note("budget %.0f of %.0f", e.Level.Used, e.Level.Allowed)
}

func (o *durableEvents) Succeeded(_ context.Context, e forbear.Succeeded) {
	o.note("done %d after %s", e.Attempt, e.FailedBefore)
}

func (o *durableEvents) CertificateRefused(_ context.Context, e forbear.CertificateRefused) {
	o.note("certificate %s", e.CorrelationID)
}

func TestDurableCallsAreTold(t *testing.T) {
	o := &durableEvents{}
	r, now, ctx := webhooks(t, forbear.WithObserver(o)), time.Now(), t.Context()
	s := forbear.State{NeedsKey: true, Key: "k"}
	i := r.Info(&s, "c")
	r.Attempted(ctx, i, unavailable, time.Second)
	r.Decided(ctx, i, r.Next(&s, unavailable, now), unavailable, time.Second, 1, now)
	i = r.Info(&s, "c")
	r.Attempted(ctx, i, unavailable, time.Second)
	r.Decided(ctx, i, r.Next(&s, unavailable, now), unavailable, time.Second, 0, now)
	refused := forbear.Failure{Class: forbear.ClassCertificate, Type: "certificate"}
	r.Decided(ctx, i, r.Next(&s, refused, now), refused, time.Second, 2, now)
	r.Done(ctx, i, time.Minute, unavailable.Type)
	want := []string{
		`attempt 1 of 5 "http_503"`, "budget 1 of 1", "retry 2 k",
		`attempt 2 of 5 "http_503"`, "budget 1 of 1", "stopped budget_exhausted after 0",
		"certificate c", "stopped tls_certificate after 2", "done 2 after http_503",
	}
	if got := fmt.Sprint(o.log); got != fmt.Sprint(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
