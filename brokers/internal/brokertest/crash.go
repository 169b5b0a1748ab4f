package brokertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
)

// crashing is the store of a process that dies after the effect and before
// it can record the end. Claims still work, as they did before the crash.
type crashing struct {
	idempotency.Store
	mu   sync.Mutex
	dead bool
}

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
	k.o.Lease = 300 * time.Millisecond                               // the new process waits for its end
	k.o.Backlog = &idempotency.Backlog{Store: store, MaxEntries: -1} // what it kept would die with it
	stop := k.start()
	b.Publish(t, "e1", "k", "body e1")
	k.until("the effect has happened", func() bool { return k.done() >= 1 })
	stop()
	k.keeps(1)
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
