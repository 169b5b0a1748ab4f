package consume_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// Events without an id have a letter each where they differ in anything, and one where
// they are the same event again. A redrive is about the letter that there is.
func TestLettersOfEventsWithoutID(t *testing.T) {
	q := &letters{}
	c := consumer(t, options(t, q), func(context.Context, consume.Event) error { return nil })
	first := consume.Event{
		Source: "amqp:shop", Type: "order.created", Time: time.Unix(1, 0), Data: []byte("{}"),
		Headers: []deadletter.Header{{Name: "order", Value: "17"}, {Name: "Authorization", Value: "Bearer one"}},
	}
	with := func(change func(*consume.Event)) consume.Event {
		e := first
		e.Headers = slices.Clone(e.Headers)
		change(&e)
		return e
	}
	header := func(name, value string) func(*consume.Event) {
		return func(e *consume.Event) { e.Headers = append(e.Headers, deadletter.Header{Name: name, Value: value}) }
	}
	for name, e := range map[string]consume.Event{
		"again":         first,
		"delivery":      with(header("x-delivery-count", "3")),
		"death":         with(header("x-first-death-queue", "orders")),
		"trace":         with(header("Traceparent", "00-1-2-01")),
		"signature":     with(header("Webhook-Signature", "v1,x")),
		"sent by hand":  with(header("forbear-reason", "invalid")),
		"a fresh token": with(func(e *consume.Event) { e.Headers[1].Value = "Bearer two" }),
	} {
		if c.LetterID(e) != c.LetterID(first) {
			t.Errorf("%s: another letter of the same event", name)
		}
	}
	events := []consume.Event{
		first,
		with(func(e *consume.Event) { e.Headers[0].Value = "18" }),
		with(func(e *consume.Event) { e.Type = "order.changed" }),
		with(func(e *consume.Event) { e.Subject = "s" }),
		with(func(e *consume.Event) { e.Key = "k" }),
		with(func(e *consume.Event) { e.Time = time.Unix(2, 0) }),
		with(func(e *consume.Event) { e.CorrelationID = "c" }),
		with(func(e *consume.Event) { e.ContentType = "text/plain" }),
		with(func(e *consume.Event) { e.Data = []byte("[]") }),
		with(header("x", "")),
	}
	for range 2 { // each comes twice
		for _, e := range events {
			if d := c.Consume(t.Context(), e); d.Action != consume.DeadLettered {
				t.Fatalf("got %+v", d)
			}
		}
	}
	if len(q.byID) != len(events) {
		t.Errorf("%d letters of %d events", len(q.byID), len(events))
	}
	for id, l := range q.byID {
		if got := c.LetterID(consume.FromLetter(l)); got != id {
			t.Errorf("a redrive of %s is about %s", id, got)
		}
	}
}
