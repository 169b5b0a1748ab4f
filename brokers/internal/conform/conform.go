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

// Broker is a broker with one queue, stream or topic, that is empty.
type Broker interface {
	// Run runs the adapter until ctx ends.
	Run(ctx context.Context, to *consume.Consumer) error
	// Publish sends a CloudEvent of that id and partition key. Its source and
	// type are "/conform" and "test", and it has a header x-a.
	Publish(t *testing.T, id, key, body string)
	// PublishRaw sends what says that it is a structured CloudEvent.
	PublishRaw(t *testing.T, body string)
	// Unsettled counts the messages that the broker would bring again.
	Unsettled(t *testing.T) int
	// Restart crashes the broker and starts it again with what it had stored.
	Restart(t *testing.T)
}

// Run runs the suite, each test on a new broker.
func Run(t *testing.T, open func(t *testing.T) Broker) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, b Broker)
	}{
		{"EachEventOnce", eachEventOnce},
		{"RetriedLaterWithItsCount", retriedLater},
		{"PoisonIsBuriedBeforeTheAck", poison},
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

// kit is one consumer's world.
type kit struct {
	t *testing.T
	b Broker
	o consume.Options
	q *letters

	mu      sync.Mutex
	runs    map[string]int
	order   []string
	handler func(ctx context.Context, e consume.Event, run int) error
}

func newKit(t *testing.T, b Broker, handler func(ctx context.Context, e consume.Event, run int) error) *kit {
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 3, Backoff: forbear.Backoff{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}, Breaker: breaker.Policy{Disabled: true}}
	p.Budget.MinRetries = 1000
	r, err := forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, b: b, q: &letters{}, runs: map[string]int{}, handler: handler}
	k.o = consume.Options{Group: "conform", Store: &memstore.Idempotency{}, DLQ: k.q, Retryer: r, InPlace: -1, Lease: 300 * time.Millisecond}
	return k
}

// start runs the adapter; stop ends it and waits.
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
		case <-time.After(20 * time.Second):
			k.t.Error("the adapter does not end")
		}
	})
	k.t.Cleanup(stop)
	return stop
}

// until waits for something to come true.
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
	k.t.Fatalf("never: %s; runs %v, %d letters, %d unsettled", what, k.runs, k.q.count(), k.b.Unsettled(k.t))
}

func (k *kit) done() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.order)
}

func (k *kit) ran(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs[id]
}

func (k *kit) settled() {
	k.t.Helper()
	k.until("everything is settled", func() bool { return k.b.Unsettled(k.t) == 0 })
}

func good(context.Context, consume.Event, int) error { return nil }

func busy() error { return forbear.Retryable(errors.New("busy"), forbear.Hint{}) }

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
		k.settled()
	}
	if k.done() != 30 || len(k.runs) != 30 {
		t.Errorf("%d runs of %d events", k.done(), len(k.runs))
	}
}

// The count of attempts survives a new process, and ends in the queue.
func retriedLater(t *testing.T, b Broker) {
	k := newKit(t, b, func(ctx context.Context, _ consume.Event, n int) error {
		if got := consume.Attempt(ctx); got != n {
			t.Errorf("run %d is attempt %d", n, got)
		}
		return busy()
	})
	stop := k.start()
	b.Publish(t, "e1", "k", "body e1")
	k.until("it has failed once", func() bool { return k.ran("e1") >= 1 })
	stop()
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d unsettled after the first failure", n)
	}
	k.start()
	k.until("it is a dead letter", func() bool { return k.q.count() == 1 })
	k.settled()
	l := k.q.only(t)
	if k.ran("e1") != 4 || l.Attempts != 4 || l.Reason != "exhausted" || string(l.Payload) != "body e1" || l.EventID != "e1" || !hasHeader(l, "x-a", "1") {
		t.Errorf("%d runs, %+v", k.ran("e1"), l)
	}
}

// While the dead-letter queue is down, nothing is acknowledged and nothing runs
// twice.
func poison(t *testing.T, b Broker) {
	k := newKit(t, b, func(context.Context, consume.Event, int) error { return forbear.Terminal(errors.New("bad")) })
	k.q.set(true)
	k.start()
	b.Publish(t, "p1", "k", "body p1")
	b.PublishRaw(t, `{"specversion":`)
	k.until("the queue has refused both", func() bool { return k.q.refusals() >= 2 })
	time.Sleep(200 * time.Millisecond)
	if n := b.Unsettled(t); n != 2 {
		t.Errorf("%d unsettled, want 2: what is not buried must not be acknowledged", n)
	}
	k.q.set(false)
	k.until("both are dead letters", func() bool { return k.q.count() == 2 })
	k.settled()
	if k.ran("p1") != 1 {
		t.Errorf("the poison ran %d times", k.ran("p1"))
	}
	for _, l := range k.q.all() {
		if l.EventID != "p1" && (l.Reason != deadletter.ReasonUndecodable || string(l.Payload) != `{"specversion":`) {
			t.Errorf("got %+v", l)
		}
	}
}

// crashing is a store of a process that dies before it can write the end.
type crashing struct {
	idempotency.Store
	mu   sync.Mutex
	dead bool
}

var errCrashed = errors.New("crashed")

func (s *crashing) gone() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errCrashed
	}
	return nil
}

func (s *crashing) set(dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = dead
}

func (s *crashing) Complete(ctx context.Context, k idempotency.Token, a idempotency.Response, d time.Duration) error {
	if err := s.gone(); err != nil {
		return err
	}
	return s.Store.Complete(ctx, k, a, d)
}

func (s *crashing) Renew(ctx context.Context, k idempotency.Token, d time.Duration) error {
	if err := s.gone(); err != nil {
		return err
	}
	return s.Store.Renew(ctx, k, d)
}

// An event whose effect happened and whose end did not runs again, under a
// higher fence.
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
	if n := b.Unsettled(t); n != 1 {
		t.Errorf("%d unsettled, want 1", n)
	}
	store.set(false)
	k.start()
	k.until("it ran again", func() bool { return k.done() >= 2 })
	k.settled()
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i < len(fences); i++ {
		if fences[i] <= fences[i-1] {
			t.Errorf("fences %v do not grow", fences)
		}
	}
}

// An event that is done and was not acknowledged comes again, and is dropped.
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
	k.settled()
	mu.Lock()
	defer mu.Unlock()
	if k.ran("e1") != 0 || k.ran("e2") != 1 || duplicates == 0 {
		t.Errorf("runs %v, %d duplicates", k.runs, duplicates)
	}
}

// An event that waits for long lets the others pass, those of its key too where
// order is not asked for.
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
	if n := b.Unsettled(t); n < 1 {
		t.Error("the held event is forgotten")
	}
}

func orderOfAKey(t *testing.T, b Broker) {
	k := newKit(t, b, func(_ context.Context, e consume.Event, n int) error {
		if e.ID == "a0" && n < 3 {
			return busy()
		}
		return nil
	})
	k.o.Ordered = true
	for i := range 5 {
		b.Publish(t, fmt.Sprint("a", i), "a", "body")
	}
	b.Publish(t, "b0", "b", "body")
	k.start()
	k.until("all are done", func() bool { return k.done() == 6 })
	k.settled()
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
	b.Restart(t)
	for i := range 10 {
		b.Publish(t, fmt.Sprint("f", i), "k", "body")
	}
	k.until("all are done", func() bool { return k.done() == 20 })
	k.settled()
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, n := range k.runs {
		if want := map[bool]int{true: 3, false: 1}[id == "e3"]; n != want {
			t.Errorf("%s ran %d times, want %d", id, n, want)
		}
	}
}

// While the breaker is open nothing is taken up, and so nothing given back.
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
	time.Sleep(time.Second)
	if n := decisions.Load(); n != 0 {
		t.Errorf("%d events were taken up and put off", n)
	}
	if n := b.Unsettled(t); n != 40 {
		t.Errorf("%d unsettled of 40", n)
	}
	r.Breaker().Force(breaker.Closed, "test", time.Now())
	r.Breaker().Release()
	k.until("all are done", func() bool { return k.done() == 40 })
	k.settled()
	if len(k.runs) != 40 {
		t.Errorf("%d events ran", len(k.runs))
	}
}

func hasHeader(l deadletter.Letter, name, value string) bool {
	for _, h := range l.Headers {
		if h.Name == name && h.Value == value {
			return true
		}
	}
	return false
}
