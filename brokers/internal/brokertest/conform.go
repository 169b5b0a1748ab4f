// Package brokertest holds the conformance suite that each adapter passes on a
// real broker. An adapter's promise is about what the broker does when a
// process, a store or the broker itself fails, and no fake shows that.
package brokertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
)

// Broker is a broker with one empty queue, stream or topic, and the adapter
// under test on top of it.
type Broker interface {
	// Run runs the adapter until ctx ends.
	Run(ctx context.Context, to *consume.Consumer) error
	// Publish sends a CloudEvent of that id and partition key. Its source and
	// type are "/conform" and "test", and it has the headers x-a and [Traceparent].
	Publish(t *testing.T, id, key, body string)
	// PublishRaw sends what says that it is a structured CloudEvent.
	PublishRaw(t *testing.T, body string)
	// Unacknowledged counts the messages that the broker would deliver again. It
	// is what a new process would find.
	Unacknowledged(t *testing.T) int
	// Restart crashes the broker and starts it again with what it had stored.
	Restart(t *testing.T)
	// Concurrency is the number of handlers that Run has at once.
	Concurrency() int
	// Delete deletes the queue, stream or topic with all that it holds, and Recreate
	// makes it again under its name.
	Delete(t *testing.T)
	Recreate(t *testing.T)
	// Cut breaks the connections of Run, and lets it make no other until mend is called.
	Cut(t *testing.T) (mend func())
	// Freeze lets the broker say and hear nothing until thaw is called; no connection
	// breaks by that.
	Freeze(t *testing.T) (thaw func())
}

// Traceparent is that of each published event.
const Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Run runs the suite, each test on a new broker. It takes minutes, since
// brokers take their time to redeliver: nothing here bounds how fast they
// are.
func Run(t *testing.T, open func(t *testing.T) Broker) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b Broker)
	}{
		{"EachEventOnce", eachEventOnce},
		{"RetriedLaterWithItsCount", retriedLater},
		{"PoisonIsDeadLetteredBeforeTheAck", poison},
		{"CrashBetweenEffectAndEnd", crashBeforeEnd},
		{"CrashBetweenEndAndAck", crashBeforeAck},
		{"AHeldEventHoldsNoOther", heldEvent},
		{"OrderOfAKey", orderOfAKey},
		{"BrokerRestarts", brokerRestarts},
		{"AnOpenBreakerStopsTheSource", openBreaker},
		{"TransientsHoldUpNoOther", transients},
		{"AnOutageCopiesNothing", outage},
		{"DeafHandlersHoldUpNoOther", deafHandlers},
		{"WhatIsDeletedEndsIt", deleted},
		{"NothingIsLostInBadWeather", badWeather},
		{"OrderInBadWeather", orderInBadWeather},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// The sender may publish an event twice, and an adapter must not make that
// two effects. Attributes, data and the trace arrive as they were sent.
func eachEventOnce(t *testing.T, b Broker) {
	k := newKit(t, b, func(ctx context.Context, e consume.Event, _ int) error {
		if got := edge.TraceContextFrom(ctx).Parent(); got != Traceparent {
			t.Errorf("the handler's trace is %q, want the publisher's", got)
		}
		if e.Source != "/conform" || e.Type != "test" || string(e.Data) != "body "+e.ID || e.Key == "" {
			t.Errorf("got %+v", e)
		}
		return nil
	})
	k.start()
	for range 2 { // the second time they are duplicates of the sender's
		for i := range 30 {
			b.Publish(t, fmt.Sprint("e", i), fmt.Sprint(i%3), fmt.Sprint("body e", i))
		}
		k.until("30 are done", func() bool { return k.done() == 30 })
		k.acknowledged()
	}
	if k.done() != 30 || len(k.runs) != 30 {
		t.Errorf("%d runs of %d events", k.done(), len(k.runs))
	}
}

// The count of attempts survives a new process, and ends in the dead-letter
// queue with the original payload and headers.
func retriedLater(t *testing.T, b Broker) {
	k := newKit(t, b, func(ctx context.Context, _ consume.Event, n int) error {
		if got := consume.Attempt(ctx); got != n {
			t.Errorf("run %d is attempt %d", n, got)
		}
		if n == 1 { // its retries are not over before the stop
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 4 * time.Second})
		}
		return busy()
	})
	var decided atomic.Int32
	k.o.Observe = func(consume.Event, consume.Decision) { decided.Add(1) }
	stop := k.start()
	b.Publish(t, "e1", "k", "body e1")
	// Stopping in the middle of the retries is what a deployment does.
	k.until("it has failed once", func() bool { return decided.Load() >= 1 })
	stop()
	k.keeps(1)
	k.start()
	k.until("it is a dead letter", func() bool { return k.q.count() == 1 })
	k.acknowledged()
	l := k.q.only(t)
	if k.ran("e1") != 4 || l.Attempts != 4 || l.Reason != "exhausted" || string(l.Payload) != "body e1" || l.EventID != "e1" || !hasHeader(l, "x-a", "1") {
		t.Errorf("%d runs, %+v", k.ran("e1"), l)
	}
}

// While the dead-letter queue is down, nothing is acknowledged and no
// handler runs again: acknowledging would lose the event, and running a
// terminal failure again would repeat it in vain.
func poison(t *testing.T, b Broker) {
	k := newKit(t, b, func(context.Context, consume.Event, int) error { return forbear.Terminal(errors.New("bad")) })
	// The queue is down before the first event comes, as after a bad
	// deployment.
	k.q.set(true)
	k.start()
	b.Publish(t, "p1", "k", "body p1")
	// The second kind of poison never reaches a handler: it cannot be
	// decoded.
	b.PublishRaw(t, `{"specversion":`)
	k.until("the queue has refused both", func() bool { return k.q.refusals() >= 2 })
	// Long enough for a wrong acknowledgment to arrive; a right adapter
	// passes however short it is.
	time.Sleep(200 * time.Millisecond)
	k.keeps(2) // what is not dead-lettered must not be acknowledged
	// Nothing else changes: the adapter has to come back to both events by
	// itself.
	k.q.set(false)
	k.until("both are dead letters", func() bool { return k.q.count() == 2 })
	k.acknowledged()
	if k.ran("p1") != 1 {
		t.Errorf("the poison ran %d times", k.ran("p1"))
	}
	for _, l := range k.q.all() {
		if l.EventID != "p1" && (l.Reason != deadletter.ReasonUndecodable || string(l.Payload) != `{"specversion":`) {
			t.Errorf("got %+v", l)
		}
	}
}

// errCrashed stands for a connection that broke.
var errCrashed = errors.New("crashed")

// An event that waits for an hour lets the others pass, those of its own key
// included, where order was not asked for.
func heldEvent(t *testing.T, b Broker) {
	k := newKit(t, b, func(_ context.Context, e consume.Event, _ int) error {
		if e.ID == "held" {
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: time.Hour})
		}
		return nil
	})
	k.start()
	b.Publish(t, "held", "k", "body held")
	for i := range 50 {
		b.Publish(t, fmt.Sprint("e", i), "k", "body")
	}
	k.until("the others are done", func() bool { return k.done() == 50 })
	k.until("the held event has run", func() bool { return k.ran("held") > 0 })
	if k.ran("held") != 1 {
		t.Errorf("the held event ran %d times", k.ran("held"))
	}
	k.until("the broker has the held event", func() bool { return b.Unacknowledged(t) >= 1 })
}

// With order asked for, later events of a key wait for a failing one, and
// events of other keys do not.
func orderOfAKey(t *testing.T, b Broker) {
	var k *kit
	k = newKit(t, b, func(_ context.Context, e consume.Event, n int) error {
		// It fails until the other key is done, for up to six seconds.
		if e.ID == "a0" && (n == 1 || n < 4 && k.done() == 0) {
			return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: 2 * time.Second})
		}
		return nil
	})
	// The events are published before the start, so that they are all there
	// at once and only the adapter decides about their order.
	k.o.Ordered = true
	for i := range 5 {
		b.Publish(t, fmt.Sprint("a", i), "a", "body")
	}
	b.Publish(t, "b0", "b", "body")
	k.start()
	k.until("all are done", func() bool { return k.done() == 6 })
	k.acknowledged()
	k.mu.Lock()
	defer k.mu.Unlock()
	next := 0
	for _, id := range k.order {
		if id[0] != 'a' {
			continue
		}
		if id != fmt.Sprint("a", next) {
			t.Fatalf("order %v", k.order)
		}
		next++
	}
	if k.order[0] != "b0" {
		t.Errorf("order %v: the other key must not wait", k.order)
	}
}

// Events under way and events with a count of failures survive a restart of
// the broker. Nothing is done twice, although redeliveries are allowed.
func brokerRestarts(t *testing.T, b Broker) {
	k := newKit(t, b, func(_ context.Context, e consume.Event, n int) error {
		if e.ID == "e3" && n < 3 {
			return busy()
		}
		return nil
	})
	k.start()
	for i := range 10 {
		b.Publish(t, fmt.Sprint("e", i), "k", "body")
	}
	k.until("some are done", func() bool { return k.done() >= 5 })
	// By then some are done, some wait for a retry and some are untouched.
	b.Restart(t)
	for i := range 10 {
		b.Publish(t, fmt.Sprint("f", i), "k", "body")
	}
	k.until("all are done", func() bool { return k.done() == 20 })
	k.acknowledged()
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, n := range k.runs {
		if want := map[bool]int{true: 3, false: 1}[id == "e3"]; n != want {
			t.Errorf("%s ran %d times, want %d", id, n, want)
		}
	}
}

// While the breaker is open nothing is taken up, and so nothing is given
// back: a broker that redelivers at once would otherwise spin. After it
// closes all events are handled once.
func openBreaker(t *testing.T, b Broker) {
	k := newKit(t, b, good)
	r, err := forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	k.o.Retryer = r
	var decisions atomic.Int64
	k.o.Observe = func(consume.Event, consume.Decision) { decisions.Add(1) }
	r.Breaker().Force(breaker.Open, "test", time.Now())
	for i := range 40 {
		b.Publish(t, fmt.Sprint("e", i), fmt.Sprint(i%3), "body")
	}
	k.start()
	// A source that does not stop would take up all forty within this
	// second.
	time.Sleep(time.Second)
	if n := decisions.Load(); n != 0 {
		t.Errorf("%d events were taken up and postponed", n)
	}
	k.keeps(40)
	r.Breaker().Force(breaker.Closed, "test", time.Now())
	r.Breaker().Release()
	k.until("all are done", func() bool { return k.done() == 40 })
	k.acknowledged()
	if len(k.runs) != 40 {
		t.Errorf("%d events ran", len(k.runs))
	}
}

// hasHeader reports whether a letter kept a header of the event.
func hasHeader(l deadletter.Letter, name, value string) bool {
	for _, h := range l.Headers {
		if h.Name == name && h.Value == value {
			return true
		}
	}
	return false
}
