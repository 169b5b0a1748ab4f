package rabbitconsume_test

import (
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/rabbitconsume"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

func TestLetters(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q := open(t, s, "orders")
	topic, err := rabbitconsume.NewLetters(rabbitconsume.LettersOptions{Dial: s.dial, Key: "orders.dead"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = topic.Close() })
	declare := func(t *testing.T) {
		if _, err := q.channel(t).QueueDeclare("orders.dead", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	next := func(t *testing.T) brokertest.Message {
		for range 600 {
			d, ok, err := q.channel(t).Get("orders.dead", true)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			if d.DeliveryMode != amqp.Persistent {
				t.Error("it would not survive the server")
			}
			m := brokertest.Message{Headers: map[string]string{"message-id": d.MessageId}, Body: string(d.Body)}
			for name, v := range d.Headers {
				m.Headers[name], _ = v.(string)
			}
			return m
		}
		t.Fatal("no message")
		return brokertest.Message{}
	}
	brokertest.Topic(t, q, topic, "cloudEvents:", declare, next)

	// A server that went away and came back has the next letter.
	l := deadletter.Letter{ID: "l1", EventID: "e9", Payload: []byte("later")}
	s.kill()
	if err := topic.Put(t.Context(), l); err == nil {
		t.Error("a server that is down took a letter")
	}
	s.boot(t)
	declare(t) // one that is killed on a busy machine has come back without it
	if err := topic.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	m := next(t)
	for m.Body != "later" { // acknowledgements of the others may be lost with the server
		m = next(t)
	}
	if m.Headers["message-id"] != "e9" {
		t.Errorf("got %+v", m)
	}

	// Of one whose headers do not fit beside those that say why, a notice is published; so
	// it is of one whose body is too large.
	l.Payload, l.Headers = []byte("large"), []deadletter.Header{{Name: "large", Value: strings.Repeat("x", 131_000)}}
	if err := topic.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	m = next(t)
	if m.Body != "" || m.Headers[consume.HeaderLeftOut] != "5 bytes" || m.Headers[consume.HeaderLetter] != "l1" {
		t.Errorf("got a message of %d bytes, %s %s", len(m.Body), m.Headers[consume.HeaderLeftOut], m.Headers[consume.HeaderLetter])
	}
	frames(t, s)
	s.erl(t, "application:set_env(rabbit, max_message_size, 100)")
	_ = topic.Close() // channels have the limit of before
	l.Payload, l.Headers = make([]byte, 101), nil
	if err := topic.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if m = next(t); m.Body != "" || m.Headers[consume.HeaderLeftOut] != "101 bytes" {
		t.Errorf("got a message of %d bytes, %s", len(m.Body), m.Headers[consume.HeaderLeftOut])
	}
}

// frames holds the size of a message's properties to what the client sends, and to what the
// server takes.
func frames(t *testing.T, s *server) {
	var wire recorder
	conn, err := amqp.DialConfig(s.url(), amqp.Config{Dial: func(network, address string) (net.Conn, error) {
		c, err := net.Dial(network, address)
		wire.Conn = c
		return &wire, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	_ = ch.Confirm(false)
	m := amqp.Publishing{
		ContentType: "a/b", ContentEncoding: "br", DeliveryMode: amqp.Persistent, Priority: 3, CorrelationId: "c1", ReplyTo: "r",
		Expiration: "1000", MessageId: "m1", Timestamp: time.Unix(1, 0), Type: "t", UserId: "guest", AppId: "app",
		Headers: amqp.Table{
			"text": "x", "bytes": []byte("xy"), "table": amqp.Table{"a": int64(1), "b": nil}, "list": []any{"x", 1.5, true},
			"int8": int8(1), "byte": byte(1), "int16": int16(1), "uint16": uint16(1), "int": 1, "int32": int32(1), "uint32": uint32(1),
			"float32": float32(1), "decimal": amqp.Decimal{Scale: 1, Value: 15}, "time": time.Unix(1, 0), "fill": "",
		},
	}
	most := conn.Config.FrameSize
	m.Headers["fill"] = strings.Repeat("x", most-rabbitconsume.Frame(m))
	for _, m := range []amqp.Publishing{m, {}, {Body: []byte("x")}} {
		wire.reset()
		confirm, err := ch.PublishWithDeferredConfirm("", "orders.none", false, false, m)
		if err != nil || !confirm.Wait() {
			t.Fatalf("not taken: %v", err)
		}
		if sent := wire.properties(); sent != rabbitconsume.Frame(m) {
			t.Errorf("%d bytes sent, %d computed", sent, rabbitconsume.Frame(m))
		}
	}
}

// recorder keeps what is written to a connection.
type recorder struct {
	net.Conn

	mu   sync.Mutex
	sent []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.sent = append(r.sent, b...)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

// properties returns the size of the frame of the properties (AMQP 0-9-1, 4.2.3).
func (r *recorder) properties() int {
	const properties, around = 2, 8
	r.mu.Lock()
	defer r.mu.Unlock()
	for b := r.sent; len(b) > around; {
		n := int(binary.BigEndian.Uint32(b[3:])) + around
		if b[0] == properties {
			return n
		}
		b = b[n:]
	}
	return 0
}
