package rabbitconsume_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/brokers/internal/conform"
	"github.com/forbear-go/forbear/brokers/rabbitconsume"
	"github.com/forbear-go/forbear/consume"
)

// queue is one queue of a server.
type queue struct {
	*server
	name string

	mu sync.Mutex
	ch *amqp.Channel
}

func (q *queue) channel(t *testing.T) *amqp.Channel {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ch != nil && !q.ch.IsClosed() {
		return q.ch
	}
	conn, err := q.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if q.ch, err = conn.Channel(); err == nil {
		err = q.ch.Confirm(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return q.ch
}

func (q *queue) Run(ctx context.Context, to *consume.Consumer) error {
	return rabbitconsume.Run(ctx, to, rabbitconsume.Options{Queue: q.name, Dial: q.dial, Concurrency: q.Concurrency()})
}

func (q *queue) publish(t *testing.T, p amqp.Publishing) {
	t.Helper()
	p.DeliveryMode = amqp.Persistent
	confirm, err := q.channel(t).PublishWithDeferredConfirm("", q.name, true, false, p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		t.Fatal("not confirmed", err)
	}
}

func (q *queue) Publish(t *testing.T, id, key, body string) {
	q.publish(t, amqp.Publishing{Body: []byte(body), Headers: amqp.Table{
		"cloudEvents:specversion": "1.0", "cloudEvents:id": id, "cloudEvents:source": "/conform", "cloudEvents:type": "test", "cloudEvents:partitionkey": key, "x-a": "1", "traceparent": conform.Traceparent,
	}})
}

func (q *queue) PublishRaw(t *testing.T, body string) {
	q.publish(t, amqp.Publishing{ContentType: "application/cloudevents+json", Body: []byte(body)})
}

// Unacknowledged counts the messages of the queue and of its waiting queues. It is -1
// while the server knows no count of the queue.
func (q *queue) Unacknowledged(t *testing.T) int {
	t.Helper()
	counts := q.messages(t)
	if _, known := counts[q.name]; !known {
		return -1
	}
	sum := 0
	for name, n := range counts {
		if name == q.name || strings.HasPrefix(name, q.name+".retry.") {
			sum += n
		}
	}
	return sum
}

func (q *queue) Restart(t *testing.T) {
	q.kill()
	q.boot(t)
}

func (q *queue) Concurrency() int { return 4 }

func (q *queue) Delete(t *testing.T) {
	if _, err := q.channel(t).QueueDelete(q.name, false, false, false); err != nil {
		t.Fatal(err)
	}
}

// One server, and a queue for each test.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := 0
	conform.Run(t, func(t *testing.T) conform.Broker {
		n++
		return open(t, s, fmt.Sprint("orders", n))
	})
}

func open(t *testing.T, s *server, name string) *queue {
	t.Helper()
	q := &queue{server: s, name: name}
	if _, err := q.channel(t).QueueDeclare(name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestDecode(t *testing.T) {
	for name, test := range map[string]struct {
		m    amqp.Delivery
		want string
	}{
		"CloudEvent": {amqp.Delivery{Headers: amqp.Table{"cloudEvents:specversion": "1.0", "cloudEvents:id": "1", "cloudEvents:source": "/s", "cloudEvents:type": "t"}}, "1 /s t"},
		"underscore": {amqp.Delivery{Headers: amqp.Table{"cloudEvents_specversion": []byte("1.0"), "cloudEvents_id": "1", "cloudEvents_source": "/s", "cloudEvents_type": "t"}}, "1 /s t"},
		"message id": {amqp.Delivery{MessageId: "m1", AppId: "shop", RoutingKey: "order.created"}, "m1 amqp:shop order.created"},
		"no id":      {amqp.Delivery{RoutingKey: "order.created"}, "the message has no id"},
	} {
		e, err := rabbitconsume.Decode(test.m)
		got := strings.Join([]string{e.ID, e.Source, e.Type}, " ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
