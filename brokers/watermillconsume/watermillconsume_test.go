package watermillconsume_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/watermillconsume"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// letters is a dead-letter queue that can be down.
type letters struct {
	mu   sync.Mutex
	down bool
	list []deadletter.Letter
}

func (l *letters) Put(_ context.Context, x deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return errors.New("queue is down")
	}
	l.list = append(l.list, x)
	return nil
}

func (l *letters) all() []deadletter.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}

func options(q *letters) watermillconsume.Options {
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 2, Backoff: forbear.Backoff{Base: time.Millisecond, Cap: time.Millisecond}}
	return watermillconsume.Options{Options: consume.Options{
		Group: "g", Store: &memstore.Idempotency{}, DLQ: q, InPlace: -1,
		Retryer: forbear.Must(forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter(),
			forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))),
	}}
}

// world is a router with the middleware, on Watermill's channels.
type world struct {
	ps     *gochannel.GoChannel
	router *message.Router
}

func newWorld(t *testing.T, o watermillconsume.Options, h message.HandlerFunc) *world {
	t.Helper()
	w := &world{ps: gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})}
	if o.Publisher == nil && t.Name() == "TestProducedMessages" {
		o.Publisher = w.ps
	}
	m, err := watermillconsume.Middleware(o)
	if err != nil {
		t.Fatal(err)
	}
	if w.router, err = message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}); err != nil {
		t.Fatal(err)
	}
	w.router.AddMiddleware(m)
	w.router.AddHandler("h", "in", w.ps, "out", w.ps, h)
	go func() { _ = w.router.Run(context.Background()) }()
	<-w.router.Running()
	t.Cleanup(func() { _ = w.router.Close() })
	return w
}

func (w *world) send(t *testing.T, id string) {
	t.Helper()
	msg := message.NewMessage(id, []byte("body "+id))
	msg.Metadata.Set("traceparent", brokertest.Traceparent)
	if err := w.ps.Publish("in", msg); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("never: " + what)
}

func busy() error { return forbear.Retryable(errors.New("busy"), forbear.Hint{}) }

func TestOnceAndRetried(t *testing.T) {
	var runs, done atomic.Int64
	w := newWorld(t, options(&letters{}), func(msg *message.Message) ([]*message.Message, error) {
		if n := runs.Add(1); consume.Attempt(msg.Context()) != int(n) && n < 3 {
			t.Errorf("run %d is attempt %d", n, consume.Attempt(msg.Context()))
		}
		if got := edge.TraceContextFrom(msg.Context()).Parent(); got != brokertest.Traceparent {
			t.Errorf("the handler's trace is %q, want the publisher's", got)
		}
		if runs.Load() < 3 {
			return nil, busy()
		}
		done.Add(1)
		return nil, nil
	})
	w.send(t, "m1")
	until(t, "it is done", func() bool { return done.Load() == 1 })
	w.send(t, "m1")
	w.send(t, "m2")
	until(t, "the other is done", func() bool { return done.Load() == 2 })
	if runs.Load() != 4 {
		t.Errorf("%d runs, want three of the first and one of the second", runs.Load())
	}
}

// Poison is not acknowledged before it is a dead letter.
func TestPoison(t *testing.T) {
	q := &letters{down: true}
	o := options(q)
	o.Hold = 10 * time.Millisecond
	var runs atomic.Int64
	var nacks atomic.Int64
	o.Observe = func(_ consume.Event, d consume.Decision) {
		if !d.Acknowledge() {
			nacks.Add(1)
		}
	}
	w := newWorld(t, o, func(*message.Message) ([]*message.Message, error) {
		runs.Add(1)
		return nil, errors.New("what is this")
	})
	w.send(t, "m1")
	until(t, "it has come again", func() bool { return nacks.Load() >= 3 })
	q.mu.Lock()
	q.down = false
	q.mu.Unlock()
	until(t, "it is a dead letter", func() bool { return len(q.all()) == 1 })
	if l := q.all()[0]; runs.Load() != 1 || string(l.Payload) != "body m1" || l.Source != "in" || l.Reason != "unknown_error" {
		t.Errorf("%d runs, %+v", runs.Load(), l)
	}
}

// What a handler produces is published before its event is done: a publisher
// that fails makes the event come again.
func TestProducedMessages(t *testing.T) {
	var runs atomic.Int64
	w := newWorld(t, options(&letters{}), func(msg *message.Message) ([]*message.Message, error) {
		runs.Add(1)
		return []*message.Message{message.NewMessage(fmt.Sprint("out-", msg.UUID), msg.Payload)}, nil
	})
	out, err := w.ps.Subscribe(t.Context(), "out")
	if err != nil {
		t.Fatal(err)
	}
	w.send(t, "m1")
	select {
	case msg := <-out:
		if msg.UUID != "out-m1" || runs.Load() != 1 {
			t.Errorf("got %s after %d runs", msg.UUID, runs.Load())
		}
		msg.Ack()
	case <-time.After(time.Minute):
		t.Fatal("nothing was published")
	}
}

func TestProducedMessagesWithoutAPublisher(t *testing.T) {
	q := &letters{}
	w := newWorld(t, options(q), func(msg *message.Message) ([]*message.Message, error) {
		return []*message.Message{message.NewMessage("out", msg.Payload)}, nil
	})
	w.send(t, "m1")
	until(t, "it is a dead letter", func() bool { return len(q.all()) == 1 })
}
