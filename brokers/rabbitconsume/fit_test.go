package rabbitconsume_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/brokers/rabbitconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// user adds a user who may read, and what else is said, and returns how they connect.
func (s *server) user(t *testing.T, name, configure, write string) func() (*amqp.Connection, error) {
	t.Helper()
	s.erl(t, fmt.Sprintf(`rabbit_auth_backend_internal:add_user(<<"%s">>, <<"%[1]s">>, <<"test">>)`, name))
	s.erl(t, fmt.Sprintf(`rabbit_auth_backend_internal:set_permissions(<<"%s">>, <<"/">>, <<"%s">>, <<"%s">>, <<".*">>, <<"test">>)`, name, configure, write))
	return func() (*amqp.Connection, error) {
		return amqp.Dial(fmt.Sprintf("amqp://%s:%[1]s@127.0.0.1:%d/", name, s.port))
	}
}

// unnoted makes a consumer that has no letters, and whose retries are not made in place.
func unnoted(t *testing.T, handle consume.Handler) *consume.Consumer {
	t.Helper()
	p := forbear.Policy{Kind: forbear.Event, Backoff: forbear.Backoff{Base: 50 * time.Millisecond, Cap: 200 * time.Millisecond}}
	r, err := forbear.New("ledger", p, forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		t.Fatal(err)
	}
	to, err := consume.New(handle, consume.Options{Group: "g", Store: &memstore.Idempotency{}, DLQ: noLetters{t}, Retryer: r, InPlace: -1})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// A queue that would lose events by what it is, or cannot have its waiting queues, is
// refused at once, and left as it was. The message says what to do.
func TestWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ch := open(t, s, "orders").channel(t)
	declare := func(ch *amqp.Channel, name string, durable, auto, exclusive bool, args amqp.Table) {
		t.Helper()
		if _, err := ch.QueueDeclare(name, durable, auto, exclusive, false, args); err != nil {
			t.Fatal(err)
		}
	}
	declare(ch, "transient", false, false, false, nil)
	declare(ch, "auto", true, true, false, nil)
	declare(ch, "theirs", true, false, true, nil)
	declare(ch, "expires", true, false, false, amqp.Table{"x-expires": int32(3_600_000)})
	declare(ch, "quorum expires", true, false, false, amqp.Table{"x-expires": int32(3_600_000), "x-queue-type": "quorum"})
	declare(ch, "stream", true, false, false, amqp.Table{"x-queue-type": "stream"})
	own := func() (*amqp.Connection, error) {
		conn, err := s.dial()
		if err != nil {
			return nil, err
		}
		ch, err := conn.Channel()
		if err == nil {
			_, err = ch.QueueDeclare("ours", true, false, true, false, nil)
		}
		return conn, err
	}
	none := func(context.Context, consume.Event) error { return nil }
	for _, c := range []struct {
		queue, want string
		dial        func() (*amqp.Connection, error)
	}{
		{"elsewhere", "no queue", s.dial},
		{"transient", `queue "transient" is not durable`, s.dial},
		{"auto", "declare it without auto-delete", s.dial},
		{"theirs", "declare it without exclusive", s.dial},
		{"ours", "declare it without exclusive", own},
		{"expires", "declare it without x-expires", s.dial},
		{"quorum expires", "declare it without x-expires", s.dial},
		{"stream", "is a stream", s.dial},
		{"orders", "rights to configure", s.user(t, "poor", "^$", ".*")},
		{"orders", "rights to configure", s.user(t, "mute", ".*", "^$")},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := rabbitconsume.Run(ctx, unnoted(t, none), rabbitconsume.Options{Queue: c.queue, Dial: c.dial, Logger: slog.New(slog.DiscardHandler)})
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.queue, err, c.want)
		}
	}
	left := s.messages(t, "")
	for _, name := range []string{"orders", "transient", "auto", "theirs", "expires", "stream"} {
		if _, there := left[name]; !there {
			t.Errorf("%s is gone", name)
		}
		delete(left, name)
	}
	delete(left, "quorum expires")
	if len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	for name, o := range map[string]rabbitconsume.Options{"queue": {Dial: s.dial}, "dial": {Queue: "orders"}, "concurrency": {Queue: "orders", Dial: s.dial, Concurrency: -1}} {
		if err := rabbitconsume.Run(t.Context(), unnoted(t, none), o); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}

	// What drops or orders by choice is taken. A user has the rights that it needs.
	frugal := s.user(t, "frugal", `^[a-z]+[.]retry[.]`, `^amq[.]default$`)
	for name, args := range map[string]amqp.Table{
		"limited": {"x-message-ttl": int32(3_600_000), "x-max-length": int32(100)},
		"quorum":  {"x-queue-type": "quorum", "x-delivery-limit": int32(20), "x-single-active-consumer": true},
		"lazy":    {"x-queue-mode": "lazy", "x-max-priority": int32(3)},
	} {
		declare(ch, name, true, false, false, args)
		q := &queue{server: s, name: name}
		q.Publish(t, "e", "k", "")
		ctx, stop := context.WithCancel(t.Context())
		err := rabbitconsume.Run(ctx, unnoted(t, func(context.Context, consume.Event) error { stop(); return nil }), rabbitconsume.Options{Queue: name, Dial: frugal, Concurrency: 5000})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that takes no copies of events gets none back either: a quorum queue would count
// that as deliveries, and drop them at its limit. They are retried here.
func TestNoCopies(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q := &queue{server: s, name: "counted"}
	if _, err := q.channel(t).QueueDeclare(q.name, true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := rabbitconsume.Waiting(t.Context(), s.dial, q.name); err != nil { // as an operator declares the waiting queues
		t.Fatal(err)
	}
	var mu sync.Mutex
	deliveries := map[string]int{}
	var done atomic.Int32
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	to := unnoted(t, func(ctx context.Context, _ consume.Event) error {
		if consume.Attempt(ctx) == 1 {
			return later(10 * time.Millisecond)
		}
		done.Add(1)
		return nil
	})
	mute := s.user(t, "mute", ".*", "^$")
	go func() {
		ended <- rabbitconsume.Run(ctx, to, rabbitconsume.Options{
			Queue: q.name, Dial: mute, Logger: slog.New(slog.DiscardHandler),
			Decode: func(m amqp.Delivery) (consume.Event, error) {
				e, err := rabbitconsume.Decode(m)
				mu.Lock()
				defer mu.Unlock()
				deliveries[e.ID]++
				return e, err
			},
		})
	}()
	for i := range 5 {
		q.Publish(t, fmt.Sprint("e", i), "k", "")
	}
	eventually(t, "all are done", func() bool { return done.Load() == 5 })
	eventually(t, "all are acknowledged", func() bool { return q.Unacknowledged(t) == 0 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for id, n := range deliveries {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
}

// Processes that end again and again, with what they have fetched, use up the deliveries that
// a quorum queue allows to each event. None is dropped for it.
func TestDeliveryLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q := &queue{server: s, name: "limit"}
	if _, err := q.channel(t).QueueDeclare(q.name, true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(20)}); err != nil {
		t.Fatal(err)
	}
	const events = 12
	for i := range events {
		q.Publish(t, fmt.Sprint("e", i), "k", "")
	}
	conn, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fetched := func() { // by 15 processes that end at once
		for range 15 {
			ch, err := conn.Channel()
			if err != nil {
				t.Fatal(err)
			}
			messages, err := ch.Consume(q.name, "", false, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range events {
				select {
				case <-messages:
				case <-time.After(time.Minute):
					t.Fatal("the server has dropped an event")
				}
			}
			_ = ch.Close()
		}
	}
	run := func(all func(ctx context.Context)) { // until as many as there are have come to the handler
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		var came atomic.Int32
		to := unnoted(t, func(ctx context.Context, _ consume.Event) error {
			if came.Add(1) == events {
				stop()
			}
			all(ctx)
			return ctx.Err()
		})
		if err := rabbitconsume.Run(ctx, to, rabbitconsume.Options{Queue: q.name, Dial: s.dial, Concurrency: events, Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Error(err)
		}
		if n := came.Load(); n != events {
			t.Fatalf("%d of %d events came", n, events)
		}
	}
	fetched()
	run(func(ctx context.Context) { <-ctx.Done() })
	eventually(t, "all are in the queue", func() bool { return s.messages(t, q.name)[q.name] == events })
	fetched()
	run(func(context.Context) {})
}
