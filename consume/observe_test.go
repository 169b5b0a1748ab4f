package consume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
)

// R-10 for consumers.
func TestRetriesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		o := options(t, &letters{})
		o.Retryer = forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithCallerDeadLetter(), forbear.WithBudget(&gateBudget{open: true}),
			forbear.WithObserver(forbear.LogObserver(slog.New(slog.NewTextHandler(&text, nil)), nil))))
		c := consumer(t, o, func(ctx context.Context, _ consume.Event) error {
			if edge.CorrelationID(ctx) != "corr-1" {
				t.Errorf("the handler's correlation id is %q", edge.CorrelationID(ctx))
			}
			return flaky()
		})
		e := event("e1")
		e.CorrelationID, e.Data = "corr-1", []byte("s3cret")
		deliver(t, c, e)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(lines) != 7 {
			t.Fatalf("%d lines, want five retries, the end and the dead letter:\n%s", len(lines), text.String())
		}
		for i, line := range lines[:5] {
			for _, want := range []string{"correlation_id=corr-1", "dependency=ledger", fmt.Sprintf("attempt=%d", i+2), "max_attempts=6", "backoff_ms=", "error_type=", "idempotency_key=e1"} {
				if !strings.Contains(line, want) {
					t.Errorf("%s is missing in %s", want, line)
				}
			}
		}
		if strings.Contains(text.String(), "s3cret") || strings.Contains(text.String(), "not now") {
			t.Error("the log tells what is in the event")
		}
	})
}

// R-8 wants all headers, R-9 no credentials: the names stay.
func TestDeadLetterHasNoCredentials(t *testing.T) {
	q := &letters{}
	var seen []deadletter.Header
	c := consumer(t, options(t, q), func(_ context.Context, e consume.Event) error {
		seen = e.Headers
		return forbear.Terminal(errors.New("bad"))
	})
	e := event("e1")
	e.Headers = []deadletter.Header{{Name: "x-b", Value: "1"}, {Name: "authorization", Value: "Bearer s3cret"}, {Name: "Cookie", Value: "s3cret"}, {Name: "x-b", Value: "2"}}
	c.Consume(t.Context(), e)
	want := []deadletter.Header{{Name: "x-b", Value: "1"}, {Name: "authorization", Value: deadletter.Masked}, {Name: "Cookie", Value: deadletter.Masked}, {Name: "x-b", Value: "2"}}
	if got := q.only(t).Headers; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if seen[1].Value != "Bearer s3cret" {
		t.Errorf("the handler sees %v", seen)
	}
}
