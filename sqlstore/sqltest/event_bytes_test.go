package sqltest

import (
	"context"
	"errors"
	"testing"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
)

// An event whose id is no text becomes a dead letter like any other, and a redrive of that
// letter is one of the event: its end is known when the broker brings it again.
func TestLettersOfEventsThatAreNoText(t *testing.T) {
	eachDatabase(t, func(t *testing.T, place string) {
		db := open(t, place)
		r, err := forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
		if err != nil {
			t.Fatal(err)
		}
		fails := true
		var handled []string
		c, err := consume.New(func(_ context.Context, e consume.Event) error {
			handled = append(handled, e.ID)
			if fails {
				return forbear.Terminal(errors.New("bad"))
			}
			return nil
		}, consume.Options{Group: "g", Store: db.Idempotency(), DLQ: db.DeadLetters(), Retryer: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a\x00b", "a\xffb", "base64:YQ=="} {
			e := consume.Event{ID: id, Source: "/s\xff", Type: "t", Data: []byte("{}")}
			fails, handled = true, nil
			if d := c.Consume(t.Context(), e); d.Action != consume.DeadLettered {
				t.Fatalf("%q: %+v", id, d)
			}
			l, err := db.DeadLetters().Get(t.Context(), c.LetterID(e))
			if err != nil {
				t.Fatal(err)
			}
			if d := c.Consume(t.Context(), e); d.Action != consume.DeadLettered || !d.Duplicate {
				t.Errorf("%q again: %+v", id, d)
			}
			fails = false
			if err := c.Redrive(t.Context(), l); err != nil || len(handled) != 2 || handled[1] != id {
				t.Errorf("%q: a redrive: %v, handled %q", id, err, handled)
			}
			if d := c.Consume(t.Context(), e); d.Action != consume.Ack || len(handled) != 2 {
				t.Errorf("%q after it: %+v", id, d)
			}
		}
	})
}
