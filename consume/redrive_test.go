package consume_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/idempotency"
)

// queue is a dead-letter queue that is told of redrives.
type dlq struct {
	letters
	outcomes []deadletter.RedriveResult
	alerts   int
}

func (q *dlq) RecordRedrive(_ context.Context, id string, o deadletter.RedriveResult) error {
	if _, ok := q.byID[id]; !ok {
		return queue.ErrNotFound
	}
	q.outcomes = append(q.outcomes, o)
	return nil
}

func (q *dlq) Raise(context.Context, queue.Alert) error {
	q.alerts++
	return nil
}

func TestRedriveOfALetter(t *testing.T) {
	q := &dlq{}
	o := options(t, &q.letters)
	o.DLQ, o.InPlace = q, -1
	err, n := forbear.Terminal(errors.New("bad")), 0
	c := consumer(t, o, func(_ context.Context, e consume.Event) error {
		if n++; string(e.Data) != `{"n":1}` || e.Type != "order.created" {
			t.Errorf("the handler got %+v", e)
		}
		return err
	})
	deliver(t, c, event("e1"))
	l := q.only(t)

	err = flaky() // a redrive does not wait for a better time
	if got := c.Redrive(t.Context(), l); got != nil || n != 2 {
		t.Fatalf("%v after %d runs", got, n)
	}
	if d := c.Consume(t.Context(), event("e1")); d.Action != consume.DeadLettered || n != 2 {
		t.Errorf("the broker's duplicate of a letter that failed again: %+v, %d runs", d, n)
	}
	err = nil
	for range 2 {
		if got := c.Redrive(t.Context(), l); got != nil || n != 3 {
			t.Fatalf("%v after %d runs", got, n)
		}
	}
	want := []deadletter.RedriveResult{deadletter.RedriveDead, deadletter.RedriveDelivered, deadletter.RedriveDelivered}
	if len(q.outcomes) != 3 || q.outcomes[0] != want[0] || q.outcomes[1] != want[1] || q.outcomes[2] != want[2] || q.alerts != 1 {
		t.Errorf("outcomes %v, %d alerts", q.outcomes, q.alerts)
	}
	q.only(t)
}

// A record that an operator has to settle holds its event, and nothing else.
func TestHeldRecordHoldsItsEvent(t *testing.T) {
	o := options(t, &letters{})
	n := 0
	c := consumer(t, o, func(context.Context, consume.Event) error { n++; return nil })
	id := idempotency.ID{Scope: "event:g", Key: idempotency.Digest("/orders", "e1")}
	if _, err := o.Store.Claim(t.Context(), idempotency.Claim{ID: id, Fingerprint: "event", Owner: "x", Lease: time.Hour, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := o.Store.Hold(t.Context(), idempotency.Token{ID: id, Owner: "x"}, "ask the bank"); err != nil {
		t.Fatal(err)
	}
	d := c.Consume(t.Context(), event("e1"))
	if d.Action != consume.Hold || d.Acknowledge() || d.Reason != "ask the bank" || n != 0 || d.Wait(time.Now()) != time.Minute {
		t.Errorf("%+v after %d runs", d, n)
	}
	if d := c.Consume(t.Context(), event("e2")); d.Action != consume.Ack || n != 1 {
		t.Errorf("another: %+v after %d runs", d, n)
	}
	if err := o.Store.Resolve(t.Context(), id, idempotency.Resolution{By: "ann", Why: "not booked"}); err != nil {
		t.Fatal(err)
	}
	if d := c.Consume(t.Context(), event("e1")); d.Action != consume.Ack || n != 2 {
		t.Errorf("settled: %+v after %d runs", d, n)
	}
}

// A redrive that is cut short has no outcome, and may be repeated.
func TestRedriveCutShort(t *testing.T) {
	q := &dlq{}
	o := options(t, &q.letters)
	o.DLQ = q
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	c := consumer(t, o, func(ctx context.Context, _ consume.Event) error {
		switch n++; n {
		case 1:
			return forbear.Terminal(errors.New("bad"))
		case 2:
			stop()
			return ctx.Err()
		}
		return nil
	})
	deliver(t, c, event("e1"))
	if err := c.Redrive(ctx, q.only(t)); err == nil || len(q.outcomes) > 0 {
		t.Fatalf("got %v, outcomes %v", err, q.outcomes)
	}
	if err := c.Redrive(t.Context(), q.only(t)); err != nil || n != 3 || len(q.outcomes) != 1 {
		t.Errorf("got %v, %d runs, outcomes %v", err, n, q.outcomes)
	}
}
