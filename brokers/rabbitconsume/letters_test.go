package rabbitconsume_test

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/forbear-go/forbear/brokers/internal/conform"
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
	next := func(t *testing.T) conform.Message {
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
			m := conform.Message{Headers: map[string]string{"message-id": d.MessageId}, Body: string(d.Body)}
			for name, v := range d.Headers {
				m.Headers[name], _ = v.(string)
			}
			return m
		}
		t.Fatal("no message")
		return conform.Message{}
	}
	conform.Topic(t, q, topic, "cloudEvents:", declare, next)

	// A server that went away and came back has the next letter.
	l := deadletter.Letter{ID: "l1", EventID: "e9", Payload: []byte("later")}
	s.kill()
	if err := topic.Put(t.Context(), l); err == nil {
		t.Error("a server that is down took a letter")
	}
	s.boot(t)
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
