package consume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// topic is a topic of dead letters that can be down.
type topic struct {
	down bool
	got  []deadletter.Letter
}

func (p *topic) Put(_ context.Context, l deadletter.Letter) error {
	if p.down {
		return errors.New("topic is down")
	}
	p.got = append(p.got, l)
	return nil
}

// While the topic is down the event is not over, though the store has its letter; it
// comes again for the topic alone, and then both have it.
func TestTopicDownIsNoAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, p := &letters{}, &topic{down: true}
		o := options(t, q)
		o.Topic = p
		n := 0
		c := consumer(t, o, func(context.Context, consume.Event) error { n++; return forbear.Terminal(errors.New("bad")) })
		for range 3 {
			d := c.Consume(t.Context(), event("e1"))
			if d.Acknowledge() || !strings.Contains(d.Err.Error(), "dead-letter topic: topic is down") {
				t.Fatalf("got %+v", d)
			}
			time.Sleep(time.Until(d.At))
		}
		if d := c.Poison(t.Context(), event("p1"), deadletter.ReasonUndecodable, "what is this"); d.Acknowledge() {
			t.Errorf("poison: %+v", d)
		}
		p.down = false
		deliver(t, c, event("e1"))
		if d := c.Poison(t.Context(), event("p1"), deadletter.ReasonUndecodable, "what is this"); !d.Acknowledge() {
			t.Errorf("poison: %+v", d)
		}
		if n != 1 || len(q.byID) != 2 || len(p.got) != 2 || p.got[0].EventID != "e1" || p.got[0].Error != "bad" || p.got[1].Error != "what is this" {
			t.Errorf("%d runs, %d letters, topic %+v", n, len(q.byID), p.got)
		}
		if d := deliver(t, c, event("e1")); !d.Duplicate || len(p.got) != 2 {
			t.Errorf("a duplicate of a dead letter: %+v, %d on the topic", d, len(p.got))
		}
	})
}

// The message of a letter is the original with headers that say why. It replaces
// those of an earlier death, and carries no mark of a redrive.
func TestOriginal(t *testing.T) {
	l := deadletter.Letter{
		ID: "l1", Queue: "orders", Destination: "g", EventID: "e 1\"%é", Source: "/s", Type: "t", PartitionKey: "k", ContentType: "text/plain",
		Reason: "exhausted", ErrorType: "timeout", Error: "line one\nline \"planted\"", Attempts: 6, EnqueuedAt: time.Unix(1, 0).UTC(), DeadAt: time.Unix(2, 0), Payload: []byte("body"),
		Headers: []deadletter.Header{
			{Name: "Content-Type", Value: "text/plain"},
			{Name: "x-a", Value: "1"},
			{Name: "x-a", Value: "2"},
			{Name: "Authorization", Value: deadletter.Masked},
			{Name: "Forbear-Redrive", Value: "l0"},
			{Name: "forbear-reason", Value: "terminal"},
		},
	}
	why := fmt.Sprintf("forbear-letter=l1 forbear-queue=orders forbear-group=g forbear-reason=exhausted forbear-error-type=timeout "+
		"forbear-error=line one line \"***\" forbear-cause=%s forbear-attempts=6 forbear-dead-at=1970-01-01T00:00:02Z forbear-event-id=e 1\"%%é", l.Fingerprint())
	text := func(b consume.Binding) string {
		headers, body := b.Original(l)
		var s []string
		for _, h := range headers {
			s = append(s, h.Name+"="+h.Value)
		}
		return strings.Join(s, " ") + " " + string(body)
	}
	if got, want := text(consume.Kafka), "Content-Type=text/plain x-a=1 x-a=2 Authorization=*** "+why+" body"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The envelope of a structured event is gone: its attributes are headers.
	l.Headers = []deadletter.Header{{Name: "content-type", Value: "application/cloudevents+json"}, {Name: "x-a", Value: "1"}}
	want := "x-a=1 content-type=text/plain ce-specversion=1.0 ce-id=e%201%22%25%C3%A9 ce-source=/s ce-type=t ce-partitionkey=k ce-time=1970-01-01T00:00:01Z " + why + " body"
	if got := text(consume.NATS); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	headers, body := consume.NATS.Original(l)
	if e, err := consume.NATS.Decode(headers, body); err != nil || e.ID != l.EventID || e.Source != "/s" || e.Redrive || string(e.Data) != "body" {
		t.Errorf("read again: %+v, %v", e, err)
	}
	// One that could not be read is as it was.
	l.EventID, l.ContentType = "", "application/cloudevents+json"
	if got := text(consume.NATS); !strings.HasPrefix(got, "content-type=application/cloudevents+json x-a=1 forbear-letter=l1 ") {
		t.Errorf("got %s", got)
	}
}
