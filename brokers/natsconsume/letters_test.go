package natsconsume_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/forbear-go/forbear/brokers/internal/brokertest"
	"github.com/forbear-go/forbear/brokers/natsconsume"
	"github.com/forbear-go/forbear/deadletter"
)

func TestLetters(t *testing.T) {
	b := open(t)
	topic, err := natsconsume.NewLetters(b.js, "dead.orders")
	if err != nil {
		t.Fatal(err)
	}
	var cons jetstream.Consumer
	declare := func(t *testing.T) {
		stream, err := b.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "DEAD", Subjects: []string{"dead.>"}})
		if err != nil {
			t.Fatal(err)
		}
		if cons, err = stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "d", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
			t.Fatal(err)
		}
	}
	brokertest.Topic(t, b, topic, "ce-", declare, func(t *testing.T) brokertest.Message {
		msg, err := cons.Next(jetstream.FetchMaxWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		m := brokertest.Message{Headers: map[string]string{}, Body: string(msg.Data())}
		for name, values := range msg.Headers() {
			m.Headers[name] = values[0]
		}
		return m
	})

	// A letter whose confirmation was lost is published again, and is there once; an
	// event that dies again after a redrive is there twice.
	l := deadletter.Letter{ID: "l1", EventID: "e1", LastAttempt: time.Unix(1, 0), Payload: []byte("again")}
	for range 2 {
		if err := topic.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	l.LastAttempt = time.Unix(2, 0)
	if err := topic.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	stream, err := b.js.Stream(t.Context(), "DEAD")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 3+2 {
		t.Errorf("%d messages, want 3 and 2 more; %v", info.State.Msgs, err)
	}

	// What an event asked of its stream is not asked of that of letters.
	config := info.Config
	config.AllowRollup, config.AllowMsgTTL = true, true
	if stream, err = b.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Expected-Last-Sequence": "7000", "Nats-Expected-Stream": "ORDERS", "Nats-Msg-Id": "m1", "nats-other": "x"}
	l.LastAttempt, l.Headers = time.Unix(3, 0), nil
	for name, v := range asked {
		l.Headers = append(l.Headers, deadletter.Header{Name: name, Value: v})
	}
	if err := topic.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if info, err = stream.Info(t.Context()); err != nil || info.State.Msgs != 3+3 {
		t.Errorf("%d messages, want 3 and 3 more; %v", info.State.Msgs, err)
	}
	msg, err := stream.GetMsg(t.Context(), info.State.LastSeq)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range asked {
		if got := msg.Header["x-forbear-"+name]; len(got) != 1 || got[0] != want || name != "Nats-Msg-Id" && msg.Header[name] != nil {
			t.Errorf("%s: got %q beside %q, want %q", name, got, msg.Header[name], want)
		}
	}
}
