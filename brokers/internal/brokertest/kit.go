package brokertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// kit is one consumer with its store, its dead-letter queue and a record of
// what its handler was called with.
type kit struct {
	t *testing.T
	b Broker
	o consume.Options
	q *letters
	c *consume.Consumer // that was started last

	// runs counts calls of the handler by event id, and order has the ids
	// in the order in which they succeeded.
	mu      sync.Mutex
	runs    map[string]int
	order   []string
	handler func(ctx context.Context, e consume.Event, run int) error
}

// newKit makes a kit whose retries take milliseconds. The budget never runs
// out, so that no test meets an exhausted budget by chance, and InPlace -1
// sends every retry through the broker, which is what an adapter is tested
// for.
func newKit(t *testing.T, b Broker, handler func(ctx context.Context, e consume.Event, run int) error) *kit {
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 3, Backoff: forbear.Backoff{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}, Breaker: breaker.Policy{Disabled: true}}
	r, err := forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))
	if err != nil {
		t.Fatal(err)
	}
	k := &kit{t: t, b: b, q: &letters{}, runs: map[string]int{}, handler: handler}
	k.o = consume.Options{Group: "conform", Store: &memstore.Idempotency{}, DLQ: k.q, Retryer: r, InPlace: -1, Lease: 5 * time.Second}
	return k
}

// start runs the adapter. stop ends it as a deployment would, by its
// context, and waits until it has returned; it may be called again.
func (k *kit) start() (stop func()) {
	k.t.Helper()
	c, err := consume.New(k.call, k.o)
	if err != nil {
		k.t.Fatal(err)
	}
	k.c = c
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
		case <-time.After(time.Minute):
			k.t.Error("the adapter does not end")
		}
	})
	// A test that fails half-way must not leave an adapter behind on its
	// broker.
	k.t.Cleanup(stop)
	return stop
}

// call counts a call of the handler, and makes it.
func (k *kit) call(ctx context.Context, e consume.Event) error {
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
}

// until waits for something to come true, for two minutes or more: a busy machine
// is slow. It polls, because a broker announces nothing about what it has yet to
// deliver.
func (k *kit) until(what string, ok func() bool) {
	k.t.Helper()
	for range 6000 {
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

// keeps fails the test unless the broker holds n messages back. It looks more
// than once: a message on its way from one queue to another is in neither, or
// in both, for a moment. One that is lost does not come back.
func (k *kit) keeps(n int) {
	k.t.Helper()
	got := -1
	for range 100 {
		if got = k.b.Unacknowledged(k.t); got == n {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	k.t.Errorf("%d unacknowledged, want %d", got, n)
}

// good succeeds at once.
func good(context.Context, consume.Event, int) error { return nil }

// busy is a failure that a retry may mend.
func busy() error { return forbear.Retryable(errors.New("busy"), forbear.Hint{}) }
