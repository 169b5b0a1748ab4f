package rabbitconsume_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/rabbitconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
)

// queue is one queue of a server.
type queue struct {
	*server
	name  string
	relay *porttest.Relay // between Run and the server

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
	return rabbitconsume.Run(ctx, to, rabbitconsume.Options{Queue: q.name, Dial: q.dialed, Concurrency: q.Concurrency()})
}

func (q *queue) dialed() (*amqp.Connection, error) { return amqp.Dial(q.relay.URL(q.url())) }

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
		"cloudEvents:specversion": "1.0", "cloudEvents:id": id, "cloudEvents:source": "/conform", "cloudEvents:type": "test", "cloudEvents:partitionkey": key, "x-a": "1", "traceparent": brokertest.Traceparent,
	}})
}

func (q *queue) PublishRaw(t *testing.T, body string) {
	q.publish(t, amqp.Publishing{ContentType: "application/cloudevents+json", Body: []byte(body)})
}

// Unacknowledged counts the messages of the queue and of its waiting queues. It is -1
// while the server knows no count of the queue.
func (q *queue) Unacknowledged(t *testing.T) int {
	t.Helper()
	counts := q.messages(t, q.name)
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

func (q *queue) Recreate(t *testing.T) {
	if _, err := q.channel(t).QueueDeclare(q.name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

func (q *queue) Cut(*testing.T) (mend func()) { return q.relay.Away() }

func (q *queue) Freeze(t *testing.T) (thaw func()) {
	thaw = sync.OnceFunc(func() { q.signal(syscall.SIGCONT) })
	t.Cleanup(thaw)
	q.signal(syscall.SIGSTOP)
	return thaw
}

func (q *queue) Alarm(t *testing.T) (over func()) {
	over = sync.OnceFunc(func() { q.erl(t, "vm_memory_monitor:set_vm_memory_high_watermark(0.4)") })
	t.Cleanup(over)
	q.erl(t, "vm_memory_monitor:set_vm_memory_high_watermark(0)")
	return over
}

func (q *queue) DeleteWaiting(t *testing.T) {
	for name, n := range q.messages(t, q.name) {
		if !strings.HasPrefix(name, q.name+".retry.") {
			continue
		}
		if n != 0 {
			t.Fatalf("%d messages are in %s", n, name)
		}
		if _, err := q.channel(t).QueueDelete(name, false, false, false); err != nil {
			t.Fatal(err)
		}
	}
}

// One server, and a queue for each test.
func TestConformance(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := 0
	brokertest.Run(t, func(t *testing.T) brokertest.Broker {
		n++
		return open(t, s, fmt.Sprint("orders", n))
	})
}

func open(t *testing.T, s *server, name string) *queue {
	t.Helper()
	q := &queue{server: s, name: name, relay: porttest.NewRelay(t, s.address())}
	q.Recreate(t)
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

// A letter on its topic has the properties of the message and its headers with their
// types, but for those that carry credentials, and is routed by none of them.
func TestMessageOfALetter(t *testing.T) {
	at := time.Unix(1_800_000_000, 0).UTC()
	came := amqp.Table{
		"text": "a", "bytes": []byte{0xff, 0}, "yes": true, "none": nil, "i8": int8(-1), "u8": byte(200), "i16": int16(-300), "i32": int32(7), "i64": int64(1) << 60,
		"f32": float32(0.5), "f64": 0.25, "at": at, "dec": amqp.Decimal{Scale: 2, Value: 314}, "list": []any{"x", int32(1), amqp.Table{"deep": []byte("b")}}, "table": amqp.Table{"n": int16(3)},
	}
	m := amqp.Delivery{MessageId: "m1", ContentType: "application/json", ContentEncoding: "gzip", ReplyTo: "replies", AppId: "shop", Type: "t", Body: []byte("zip"), Headers: maps.Clone(came)}
	m.Headers["Authorization"], m.Headers["CC"] = []byte("Bearer planted"), []any{"audit"}
	e, err := rabbitconsume.Decode(m)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range e.Headers { // as a consumer makes the letter
		if deadletter.CarriesCredential(h.Name) {
			e.Headers[i].Value = deadletter.Masked
		}
	}
	p := rabbitconsume.Publishing(deadletter.Letter{ID: "l1", EventID: e.ID, Source: e.Source, Type: e.Type, ContentType: e.ContentType, Headers: e.Headers, Payload: e.Data})
	if p.ContentType != "application/json" || p.ContentEncoding != "gzip" || p.ReplyTo != "replies" || p.AppId != "shop" || p.Type != "t" || string(p.Body) != "zip" {
		t.Errorf("got %+v", p)
	}
	for name, want := range came {
		if got := p.Headers[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %T %v, want %T %v", name, got, got, want, want)
		}
	}
	if text := fmt.Sprint(p.Headers, e.Headers); p.Headers["CC"] != nil || p.Headers["Authorization"] != deadletter.Masked || strings.Contains(text, "planted") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("Bearer planted"))) {
		t.Errorf("got %v", p.Headers)
	}
	if err := p.Headers.Validate(); err != nil {
		t.Error(err)
	}
}

// What a letter says of types may have been changed, and makes no header that cannot be
// sent.
func FuzzTypes(f *testing.F) {
	f.Add(`{"a":{"int32":"7"},"b":{"list":[{"table":{"c":{"decimal":[2,3]}}}]}}`)
	f.Add(`{"a":[[{}]],"b":{"bytes":"/w=="},"c":{"time":"x"},"d":{"decimal":[]}}`)
	f.Fuzz(func(t *testing.T, types string) {
		p := rabbitconsume.Publishing(deadletter.Letter{ID: "l", Headers: []deadletter.Header{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c", Value: "3"}, {Name: "d", Value: "4"}, {Name: "x-forbear-types", Value: types}}})
		if err := p.Headers.Validate(); err != nil {
			t.Error(err)
		}
	})
}
