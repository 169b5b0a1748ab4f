package consume_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/consume"
)

// The order of a key holds when its events go to another process and come back.
func TestOrderAfterAHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace, o.Ordered = -1, true
		fail := true
		var order []string
		h := func(_ context.Context, e consume.Event) error {
			if fail {
				return flaky()
			}
			order = append(order, e.ID)
			return nil
		}
		a, b := consumer(t, o, h), consumer(t, o, h)
		first, second := event("k1"), event("k2")
		first.Key, second.Key = "k", "k"
		a.Consume(t.Context(), first)
		fail = false
		time.Sleep(2 * time.Minute) // the partition has moved to b and back
		if d := a.Consume(t.Context(), second); d.Reason != "order" {
			t.Errorf("k2 passes k1, which nobody has done: %+v", d)
		}
		deliver(t, b, first)
		if d := deliver(t, a, second); d.Action != consume.Ack || strings.Join(order, " ") != "k1 k2" {
			t.Errorf("%+v, order %v", d, order)
		}
	})
}

// However the broker brings back those that wait, they run in the order in which
// they came.
func TestLineOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace, o.Ordered = -1, true
		var order []string
		failed := false
		c := consumer(t, o, func(_ context.Context, e consume.Event) error {
			if !failed {
				failed = true
				return flaky()
			}
			order = append(order, e.ID)
			return nil
		})
		var events []consume.Event
		for i := range 5 {
			e := event(fmt.Sprint(i))
			e.Key = "k"
			events = append(events, e)
			if d := c.Consume(t.Context(), e); d.Action != consume.RetryAt {
				t.Fatalf("event %d: %+v", i, d)
			}
		}
		for range 100 {
			time.Sleep(time.Second)
			for i := len(events) - 1; i >= 0; i-- { // backwards
				if c.Consume(t.Context(), events[i]).Acknowledge() {
					events = append(events[:i], events[i+1:]...)
				}
			}
		}
		if got := strings.Join(order, " "); got != "0 1 2 3 4" {
			t.Errorf("order %q", got)
		}
	})
}

// What is done already has no place in a line: a broker that has the acknowledgement of an
// event does not bring another delivery of it again, and the line would wait for that.
func TestADuplicateStandsInNoLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace, o.Ordered = -1, true
		failed := false
		c := consumer(t, o, func(_ context.Context, e consume.Event) error {
			if e.ID == "k2" && !failed {
				failed = true
				return flaky()
			}
			return nil
		})
		var events []consume.Event
		for i := range 3 {
			e := event(fmt.Sprint("k", i+1))
			e.Key = "k"
			events = append(events, e)
		}
		deliver(t, c, events[0])
		if d := c.Consume(t.Context(), events[1]); d.Action != consume.RetryAt {
			t.Fatalf("got %+v", d)
		}
		if d := c.Consume(t.Context(), events[0]); d.Action != consume.Ack || !d.Duplicate {
			t.Errorf("the other delivery of the first: %+v, want a duplicate", d)
		}
		if d := c.Consume(t.Context(), events[2]); d.Reason != "order" {
			t.Errorf("the third does not wait for the second: %+v", d)
		}
		deliver(t, c, events[1])
		if d := c.Consume(t.Context(), events[2]); d.Action != consume.Ack {
			t.Errorf("the third waits for the other delivery of the first: %+v", d)
		}
	})
}

// What another process has done meanwhile holds up no one here, when the key is back.
func TestAKeyThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &letters{})
		o.InPlace, o.Ordered = -1, true
		fail := true
		h := func(context.Context, consume.Event) error {
			if fail {
				return flaky()
			}
			return nil
		}
		a, b := consumer(t, o, h), consumer(t, o, h)
		var events []consume.Event
		for i := range 4 {
			e := event(fmt.Sprint("k", i+1))
			e.Key = "k"
			events = append(events, e)
		}
		for _, e := range events[:3] {
			if d := a.Consume(t.Context(), e); d.Action != consume.RetryAt {
				t.Fatalf("got %+v", d)
			}
		}
		fail = false
		for _, e := range events[:3] { // the partition has moved to b
			deliver(t, b, e)
		}
		if d := a.Consume(t.Context(), events[3]); d.Action != consume.Ack {
			t.Errorf("the fourth waits for what is done: %+v", d)
		}
	})
}
