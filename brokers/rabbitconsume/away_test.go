package rabbitconsume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/brokers/rabbitconsume"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// retries starts a consumer of q whose retries all go through waiting queues, and in which
// a handler may say when.
func (q *queue) retries(t *testing.T, handle consume.Handler) {
	t.Helper()
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 3, Backoff: forbear.Backoff{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}, Breaker: breaker.Policy{Disabled: true}}
	r, err := forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithBudget(budget.NewTokenBucket(1<<40, 1)))
	if err != nil {
		t.Fatal(err)
	}
	to, err := consume.New(handle, consume.Options{Group: q.name, Store: &memstore.Idempotency{}, DLQ: noLetters{t}, Retryer: r, InPlace: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- rabbitconsume.Run(ctx, to, rabbitconsume.Options{Queue: q.name, Dial: q.dialed, Concurrency: 4, Logger: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

type noLetters struct{ t *testing.T }

func (n noLetters) Put(_ context.Context, l deadletter.Letter) error {
	n.t.Errorf("a dead letter of %s: %s %s", l.EventID, l.Reason, l.Error)
	return nil
}

// slowLetters takes a letter when it comes the second time.
type slowLetters struct {
	mu  sync.Mutex
	ids map[string]int
}

func (q *slowLetters) Put(_ context.Context, l deadletter.Letter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ids[l.ID]++; q.ids[l.ID] == 1 {
		return errors.New("the queue is away")
	}
	return nil
}

func later(d time.Duration) error {
	return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: d})
}

// eventually waits for something to come true, for two minutes or more.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("never:", what)
}

// erl has the server evaluate something. A busy machine may not connect to the server in
// time: nothing was evaluated then, and it is asked again.
func (s *server) erl(t *testing.T, expression string) {
	t.Helper()
	for try := 1; ; try++ {
		cmd := exec.Command("erl_call", "-address", "127.0.0.1:"+strconv.Itoa(s.dist), "-r", "-e")
		cmd.Env = append(cmd.Environ(), "HOME="+s.dir)
		cmd.Stdin = strings.NewReader(expression + ".\n")
		out, err := cmd.CombinedOutput()
		switch {
		case err == nil && !strings.Contains(string(out), "error"):
			return
		case try == 10 || !strings.Contains(string(out), "failed to connect to node"):
			t.Fatalf("%s: %s, %v", expression, out, err)
		}
		time.Sleep(time.Second)
	}
}

func TestEventsThatWait(t *testing.T) {
	t.Parallel()
	s := newServer(t)

	// An event is what it was when it comes back, whatever the server says of it: what
	// the producer sends twice is known, and a copy goes nowhere else.
	t.Run("they are the same afterwards", func(t *testing.T) {
		q, audit := open(t, s, "same"), open(t, s, "audit")
		ch := q.channel(t)
		if err := errors.Join(ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil), ch.QueueBind(q.name, "order.*", "shop", false, nil)); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var runs []string
		q.retries(t, func(ctx context.Context, e consume.Event) error {
			mu.Lock()
			defer mu.Unlock()
			runs = append(runs, fmt.Sprint(e.ID, e.Source, e.Type, e.Key, e.Headers, string(e.Data)))
			if n := consume.Attempt(ctx); n < 3 {
				return later(100 * time.Millisecond)
			}
			return nil
		})
		send := func() {
			err := ch.Publish("shop", "order.created", true, false, amqp.Publishing{
				MessageId: "m1", DeliveryMode: amqp.Persistent, Body: []byte("body"), Headers: amqp.Table{"CC": []any{"order.copied", audit.name}, "x-a": "1"},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(runs)
		}
		send()
		eventually(t, "it is done", func() bool { return count() == 3 && q.Unacknowledged(t) == 0 })
		send()
		eventually(t, "the second is acknowledged", func() bool { return q.Unacknowledged(t) == 0 })
		mu.Lock()
		defer mu.Unlock()
		for _, r := range runs {
			if r != runs[0] || !strings.HasPrefix(r, "m1amqp:shoporder.createdorder.created") || !strings.Contains(r, "{CC ") || strings.Contains(r, "x-forbear-exchange") {
				t.Errorf("got %s, first %s", r, runs[0])
			}
		}
		if len(runs) != 3 || audit.Unacknowledged(t) != 0 {
			t.Errorf("%d runs, %d messages where a copy of the second binding would be", len(runs), audit.Unacknowledged(t))
		}
	})

	// A waiting queue that someone deletes is made again: of what has not been acknowledged
	// nothing is lost.
	t.Run("their queue is deleted", func(t *testing.T) {
		q := open(t, s, "gone")
		var failed, done atomic.Int32
		q.retries(t, func(ctx context.Context, _ consume.Event) error {
			if consume.Attempt(ctx) == 1 {
				failed.Add(1)
				return later(2 * time.Second)
			}
			done.Add(1)
			return nil
		})
		q.Publish(t, "first", "k", "")
		eventually(t, "the first is done", func() bool { return done.Load() == 1 })
		if _, err := q.channel(t).QueueDelete(q.name+".retry.4s", false, false, false); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			q.Publish(t, fmt.Sprint("m", i), "k", "")
		}
		eventually(t, "the others are done", func() bool { return done.Load() == 6 })
	})

	// Messages without an id have a letter each where they differ, whatever comes to them
	// while they wait for it.
	t.Run("they have no id", func(t *testing.T) {
		q, letters := open(t, s, "nameless"), &slowLetters{ids: map[string]int{}}
		to, err := consume.New(func(context.Context, consume.Event) error { return nil }, consume.Options{
			Group: q.name, Store: &memstore.Idempotency{}, DLQ: letters, InPlace: -1,
			Retryer: forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event}, forbear.WithoutLog(), forbear.WithCallerDeadLetter())),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range []string{"17", "18", "18"} {
			q.publish(t, amqp.Publishing{Body: []byte("{}"), Headers: amqp.Table{"order": order}})
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- q.Run(ctx, to) }()
		eventually(t, "all are acknowledged", func() bool { return q.Unacknowledged(t) == 0 })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(letters.ids) != 2 {
			t.Errorf("%d letters of two events: %v", len(letters.ids), letters.ids)
		}
	})

	// A handler that looks at its context goes on when the connection breaks, and its
	// message is a duplicate when it comes again.
	t.Run("their connection breaks while they are handled", func(t *testing.T) {
		q := open(t, s, "cut")
		var begun, done atomic.Int32
		hold := make(chan struct{})
		q.retries(t, func(ctx context.Context, e consume.Event) error {
			if e.ID == "slow" {
				begun.Add(1)
				select {
				case <-hold:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			done.Add(1)
			return nil
		})
		q.Publish(t, "slow", "k", "")
		eventually(t, "it is handled", func() bool { return begun.Load() == 1 })
		q.Cut(t)()
		q.Publish(t, "other", "k", "")
		eventually(t, "the other is done on the next connection", func() bool { return done.Load() == 1 })
		close(hold)
		eventually(t, "both are done and acknowledged", func() bool { return done.Load() == 2 && q.Unacknowledged(t) == 0 })
		if n := begun.Load(); n != 1 {
			t.Errorf("it was handled %d times", n)
		}
	})
	// RabbitMQ with an alarm reads nothing from who publishes; its queues are emptied all
	// the same, and what fails is tried again here.
	t.Run("the server has an alarm", func(t *testing.T) {
		q := open(t, s, "alarm")
		var done atomic.Int32
		hold := make(chan struct{})
		q.retries(t, func(ctx context.Context, e consume.Event) error {
			if e.ID != "first" {
				<-hold
			}
			if consume.Attempt(ctx) == 1 && (e.ID == "first" || strings.HasSuffix(e.ID, "7")) {
				return later(100 * time.Millisecond)
			}
			done.Add(1)
			return nil
		})
		q.Publish(t, "first", "k", "") // so that there is a connection that has published
		eventually(t, "the first is done", func() bool { return done.Load() == 1 })
		for i := range 300 {
			q.Publish(t, fmt.Sprint("m", i), "k", "")
		}
		s.erl(t, "vm_memory_monitor:set_vm_memory_high_watermark(0)")
		defer s.erl(t, "vm_memory_monitor:set_vm_memory_high_watermark(0.4)")
		time.Sleep(time.Second) // it is raised at the next look
		close(hold)
		eventually(t, "all are done", func() bool { return done.Load() == 301 })
	})
}
