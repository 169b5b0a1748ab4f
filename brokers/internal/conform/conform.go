// Package conform holds the conformance suite that each adapter passes on a
// broker of its own.
package conform

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/memstore"
)

// Broker is a broker with one empty queue, stream or topic, and the adapter
// under test on top of it.
type Broker interface {
	// Run runs the adapter until ctx ends.
	Run(ctx context.Context, to *consume.Consumer) error
	// Publish sends a CloudEvent of that id and partition key. Its source and
	// type are "/conform" and "test", and it has a header x-a.
	Publish(t *testing.T, id, key, body string)
	// PublishRaw sends what says that it is a structured CloudEvent.
	PublishRaw(t *testing.T, body string)
	// Unacknowledged counts the messages that the broker would deliver again. It
	// is what a new process would find.
	Unacknowledged(t *testing.T) int
	// Restart crashes the broker and starts it again with what it had stored.
	Restart(t *testing.T)
}

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
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// kit is one consumer with its store, its dead-letter queue and a record of
// what its handler was called with.
type kit struct {
	t *testing.T
	b Broker
	o consume.Options
	q *letters

	// runs counts calls of the handler by event id, and order has the ids
	// in the order in which they succeeded.
	mu      sync.Mutex
	runs    map[string]int
	order   []string
	handler func(ctx context.Context, e consume.Event, run int) error
}

// newKit makes a kit whose retries take milliseconds. The budget's floor is
// high, so that no test meets an exhausted budget by chance, and InPlace -1
// sends every retry through the broker, which is what an adapter is tested
// for.
func newKit(t *testing.T, b Broker, handler func(ctx context.Context, e consume.Event, run int) error) *kit {
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 3, Backoff: forbear.Backoff{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}, Breaker: breaker.Policy{Disabled: true}}
	// A floor this high never runs out.
	p.Budget.MinRetries = 1000
	r, err := forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, b: b, q: &letters{}, runs: map[string]int{}, handler: handler}
	k.o = consume.Options{Group: "conform", Store: &memstore.Idempotency{}, DLQ: k.q, Retryer: r, InPlace: -1, Lease: 300 * time.Millisecond}
	return k
}

// start runs the adapter. stop ends it as a deployment would, by its
// context, and waits until it has returned; it may be called again.
func (k *kit) start() (stop func()) {
	k.t.Helper()
	c, err := consume.New(func(ctx context.Context, e consume.Event) error {
		k.mu.Lock()
		k.runs[e.ID]++
		n := k.runs[e.ID]
		k.mu.Unlock()
		err := k.handler(ctx, e, n)
		if err == nil {
			k.mu.Lock()
			k.order = append(k.order, e.ID)
			k.mu.Unlock()
		}
		return err
	}, k.o)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.b.Run(ctx, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				k.t.Errorf("the adapter ended with %v", err)
			}
		// An adapter that does not end would otherwise hang the whole run.
		case <-time.After(20 * time.Second):
			k.t.Error("the adapter does not end")
		}
	})
	// A test that fails half-way must not leave an adapter behind on its
	// broker.
	k.t.Cleanup(stop)
	return stop
}

// until waits for something to come true, for up to 30 seconds. It polls,
// because a broker announces nothing about what it has yet to deliver.
func (k *kit) until(what string, ok func() bool) {
	k.t.Helper()
	for range 1500 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.t.Fatalf("never: %s; runs %v, %d letters, %d unacknowledged", what, k.runs, k.q.count(), k.b.Unacknowledged(k.t))
}

// done counts the handler's successes.
func (k *kit) done() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.order)
}

// ran counts the handler's calls for one event.
func (k *kit) ran(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs[id]
}

// acknowledged waits until the broker holds nothing back: every message was
// acknowledged.
func (k *kit) acknowledged() {
	k.t.Helper()
	k.until("everything is acknowledged", func() bool { return k.b.Unacknowledged(k.t) == 0 })
}

// good succeeds at once.
func good(context.Context, consume.Event, int) error { return nil }

// busy is a failure that a retry may mend.
func busy() error { return forbear.Retryable(errors.New("busy"), forbear.Hint{}) }

// The sender may publish an event twice, and an adapter must not make that
// two effects. Attributes and data arrive as they were sent.
func eachEventOnce(t *testing.T, b Broker) {
	k := newKit(t, b, func(_ context.Context, e consume.Event, _ int) error {
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
		return busy()
	})
	stop := k.start()
	b.Publish(t, "e1", "k", "body e1")
	// Stopping in the middle of the retries is what a deployment does.
	k.until("it has failed once", func() bool { return k.ran("e1") >= 1 })
	stop()
	if n := b.Unacknowledged(t); n != 1 {
		t.Errorf("%d unacknowledged after the first failure", n)
	}
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
	if n := b.Unacknowledged(t); n != 2 {
		t.Errorf("%d unacknowledged, want 2: what is not dead-lettered must not be acknowledged", n)
	}
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

// crashing is the store of a process that dies after the effect and before
// it can record the end. Claims still work, as they did before the crash.
type crashing struct {
	idempotency.Store
	mu   sync.Mutex
	dead bool
}

// errCrashed stands for a connection that broke.
var errCrashed = errors.New("crashed")

// gone returns the error while the process counts as dead.
func (s *crashing) gone() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errCrashed
	}
	return nil
}

// set lets the process die, or a new one begin.
func (s *crashing) set(dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = dead
}

// Complete fails while the process is dead: the record stays started.
func (s *crashing) Complete(ctx context.Context, k idempotency.Token, a idempotency.Response, d time.Duration) error {
	if err := s.gone(); err != nil {
		return err
	}
	return s.Store.Complete(ctx, k, a, d)
}

// Renew fails too, or the record would stay leased for ever.
func (s *crashing) Renew(ctx context.Context, k idempotency.Token, d time.Duration) error {
	if err := s.gone(); err != nil {
		return err
	}
	return s.Store.Renew(ctx, k, d)
}

// An event whose effect happened and whose end was not recorded runs again,
// under a higher fence: the handler can hand the fence to its own store, and
// so recognise the older run.
func crashBeforeEnd(t *testing.T, b Broker) {
	var mu sync.Mutex
	var fences []int64
	k := newKit(t, b, func(ctx context.Context, _ consume.Event, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		fences = append(fences, consume.Fence(ctx))
		return nil
	})
	store := &crashing{Store: k.o.Store, dead: true}
	k.o.Store = store
	stop := k.start()
	b.Publish(t, "e1", "k", "body e1")
	k.until("the effect has happened", func() bool { return k.done() >= 1 })
	stop()
	if n := b.Unacknowledged(t); n != 1 {
		t.Errorf("%d unacknowledged, want 1", n)
	}
	// The new process can write again, and only now may the event be
	// finished.
	store.set(false)
	k.start()
	k.until("it ran again", func() bool { return k.done() >= 2 })
	k.acknowledged()
	mu.Lock()
	defer mu.Unlock()
	// The fence of each run is above the last one's, which lets a store
	// refuse the older run.
	for i := 1; i < len(fences); i++ {
		if fences[i] <= fences[i-1] {
			t.Errorf("fences %v do not grow", fences)
		}
	}
}

// An event that is done and was not acknowledged comes again, and is dropped
// as a duplicate without another run.
func crashBeforeAck(t *testing.T, b Broker) {
	k := newKit(t, b, good)
	var mu sync.Mutex
	duplicates := 0
	k.o.Observe = func(_ consume.Event, d consume.Decision) {
		mu.Lock()
		defer mu.Unlock()
		if d.Duplicate {
			duplicates++
		}
	}
	// What a process leaves that died between the two: the record is complete,
	// the message is with the broker.
	id := idempotency.ID{Scope: "event:conform", Key: idempotency.Digest("/conform", "e1")}
	v, err := k.o.Store.Claim(t.Context(), idempotency.Claim{ID: id, Fingerprint: "event", Owner: "dead", Lease: time.Second, Retention: time.Hour, Rerun: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.o.Store.Complete(t.Context(), idempotency.Token{ID: id, Owner: "dead", Fence: v.Record.Fence}, idempotency.Response{Status: 200}, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.Publish(t, "e1", "k", "body e1")
	b.Publish(t, "e2", "k", "body e2")
	k.start()
	k.until("the other is done", func() bool { return k.done() == 1 })
	k.acknowledged()
	mu.Lock()
	defer mu.Unlock()
	// The duplicate is acknowledged without a run, or the broker would
	// deliver it for ever.
	if k.ran("e1") != 0 || k.ran("e2") != 1 || duplicates == 0 {
		t.Errorf("runs %v, %d duplicates", k.runs, duplicates)
	}
}

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
	if k.ran("held") != 1 {
		t.Errorf("the held event ran %d times", k.ran("held"))
	}
	if n := b.Unacknowledged(t); n < 1 {
		t.Error("the held event is forgotten")
	}
}

// With order asked for, later events of a key wait for a failing one, and
// events of other keys do not.
func orderOfAKey(t *testing.T, b Broker) {
	k := newKit(t, b, func(_ context.Context, e consume.Event, n int) error {
		if e.ID == "a0" && n < 3 {
			return busy()
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
		t.Errorf("%d events were taken up and put off", n)
	}
	if n := b.Unacknowledged(t); n != 40 {
		t.Errorf("%d unacknowledged of 40", n)
	}
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

// Package conform holds the conformance suite that each adapter passes on a
// real broker. An adapter's promise is about what the broker does when a
// process, a store or the broker itself fails, and no fake shows that.
