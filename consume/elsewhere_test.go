package consume_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// A handler that works on the ledger also sends mails, through a Retryer of their own.
// The mail server is down for four minutes: the events that need it come again when it is
// back, with the attempts that they had, and those that do not are done all the while.
func TestBreakerJudgesItsOwnDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter()))
		mail := forbear.Must(forbear.New("mail", forbear.Policy{Idempotent: true}, forbear.WithoutLog()))
		var up atomic.Bool
		sent, wrote := map[string]int{}, 0
		q := &letters{}
		c, err := consume.New(func(ctx context.Context, e consume.Event) error {
			if e.Type == "write" {
				wrote++
				return nil
			}
			return mail.Do(ctx, func(context.Context) error {
				if !up.Load() {
					return forbear.Retryable(errors.New("connection refused"), forbear.Hint{})
				}
				sent[e.ID]++
				return nil
			})
		}, consume.Options{Group: "g", Store: &memstore.Idempotency{}, DLQ: q, Retryer: ledger, InPlace: -1})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.AfterFunc(4*time.Minute, func() { up.Store(true) })
		// Each minute a write; the mails, thirty of them, come again when they are told.
		due := map[string]time.Time{}
		for i := range 30 {
			due[string(rune('a'+i))] = began
		}
		for len(due) > 0 && time.Since(began) < 3*time.Hour {
			for id, at := range due {
				if at.After(time.Now()) {
					continue
				}
				switch d := c.Consume(t.Context(), consume.Event{ID: id, Source: "s", Type: "mail"}); d.Action {
				case consume.RetryAt:
					due[id] = d.At
				default:
					delete(due, id)
				}
			}
			n := wrote
			if d := c.Consume(t.Context(), consume.Event{ID: time.Now().String(), Source: "s", Type: "write"}); d.Action != consume.Ack || wrote != n+1 {
				t.Fatalf("%v into the outage of the mail a write was not done: %v", time.Since(began), d.Action)
			}
			time.Sleep(time.Minute)
		}
		if ledger.Breaker().State() != breaker.Closed {
			t.Error("the ledger's breaker has opened for the mail")
		}
		if n := len(q.byID); len(sent) != 30 || n > 0 {
			t.Errorf("%d of 30 mails sent, %d dead letters, after %v", len(sent), n, time.Since(began))
		}
	})
}
