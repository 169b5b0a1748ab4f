package consume_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// A dead letter says why: the last error, its types, each attempt with its own, and
// the trace of the event. It holds nothing of the secrets that errors quote, and
// knows it all in another process, too.
func TestDeadLetterSaysWhy(t *testing.T) {
	const trace = "0af7651916cd43dd8448eb211c80319c"
	synctest.Test(t, func(t *testing.T) {
		q := &letters{}
		o := options(t, q)
		o.InPlace = -1
		n := 0
		handle := func(context.Context, consume.Event) error {
			n++
			time.Sleep(time.Second)
			return forbear.Retryable(fmt.Errorf("booking %d with Bearer planted-token-1: %w", n, errors.ErrUnsupported), forbear.Hint{})
		}
		e := event("e1")
		e.Headers = append(e.Headers, deadletter.Header{Name: "traceparent", Value: "00-" + trace + "-b7ad6b7169203331-01"})
		for q.byID == nil { // each claim in a process of its own
			d := consumer(t, o, handle).Consume(t.Context(), e)
			time.Sleep(time.Until(d.At))
		}
		l := q.only(t)
		if l.Error != "booking 6 with [redacted]: unsupported operation" || fmt.Sprint(l.Chain) != "[*fmt.wrapError *errors.errorString]" || l.TraceID != trace || l.Panic != "" {
			t.Errorf("got %+v", l)
		}
		if len(l.History) != 6 {
			t.Fatalf("%d attempts, want 6", len(l.History))
		}
		for i, a := range l.History {
			if a.Number != i+1 || a.Error != fmt.Sprintf("booking %d with [redacted]: unsupported operation", i+1) || a.Class != "transient" || a.ErrorType == "" || a.Took != time.Second || a.At.IsZero() {
				t.Errorf("attempt %d: %+v", i+1, a)
			}
		}
	})
}

// What a handler panicked with is in its letter, with the stack down to where it
// happened, also when the queue was down at first and another process writes it.
func TestDeadLetterOfAPanic(t *testing.T) {
	q := &letters{down: true}
	o := options(t, q)
	c := consumer(t, o, func(context.Context, consume.Event) error { return charge("password=planted") })
	if d := c.Consume(t.Context(), event("p1")); d.Acknowledge() || strings.Contains(d.Err.Error(), "planted") {
		t.Fatalf("got %+v", d)
	}
	q.down = false
	consumer(t, o, func(context.Context, consume.Event) error { t.Error("ran again"); return nil }).Consume(t.Context(), event("p1"))
	l := q.only(t)
	if l.Panic != "no account for password=[redacted]" || l.Error != "panicked: string" || len(l.History) != 1 || l.History[0].Error != "panicked: string" {
		t.Errorf("got %+v", l)
	}
	if first, _, _ := strings.Cut(l.Stack, "\n"); !strings.Contains(first, "consume_test.charge(") {
		t.Errorf("the stack begins with %q", first)
	}
}

// A handler that ends its goroutine is one that panicked, and later events of its key go on.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	q := &letters{}
	o := options(t, q)
	o.Ordered = true
	c := consumer(t, o, func(_ context.Context, e consume.Event) error {
		if e.ID == "p1" {
			runtime.Goexit()
		}
		return nil
	})
	first, second := event("p1"), event("p2")
	first.Key, second.Key = "k", "k"
	if d := c.Consume(t.Context(), first); d.Action != consume.DeadLettered {
		t.Fatalf("got %+v", d)
	}
	if d := c.Consume(t.Context(), second); d.Action != consume.Ack {
		t.Errorf("the next of its key: %+v", d)
	}
	if l := q.only(t); l.Panic != "runtime.Goexit" || !strings.Contains(l.Stack, "cause_test.go") {
		t.Errorf("got %+v", l)
	}
}

//go:noinline
func charge(what string) error { panic("no account for " + what) }

// An event that never came to its handler says what was wrong with it. What a
// decoder says is redacted, too, and bounded.
func TestPoisonSaysWhy(t *testing.T) {
	q := &letters{}
	c := consumer(t, options(t, q), func(context.Context, consume.Event) error { return nil })
	c.Poison(t.Context(), event("p1"), deadletter.ReasonUndecodable, "no order in token=planted "+strings.Repeat("x ", 5000))
	l := q.only(t)
	if !strings.HasPrefix(l.Error, "no order in token=[redacted] x") || len(l.Description) > deadletter.MaxDescription || strings.Contains(l.Description, "planted") {
		t.Errorf("got %q, %q", l.Error, l.Description)
	}
}
