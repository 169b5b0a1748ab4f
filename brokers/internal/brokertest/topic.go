package brokertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// Message is what a reader of a topic of dead letters gets.
type Message struct {
	Headers map[string]string
	Body    string
}

// Topic tests a topic of dead letters that does not exist at first, on the broker of
// its consumer. declare makes it, and next returns the next message that is in it, in
// the order of their arrival; prefix is that of a CloudEvent's attributes.
func Topic(t *testing.T, b Broker, topic consume.DeadLetters, prefix string, declare func(t *testing.T), next func(t *testing.T) Message) {
	k := newKit(t, b, func(context.Context, consume.Event, int) error {
		return forbear.Terminal(fmt.Errorf("no account \"planted\" at https://ann:planted@db/?planted\nfor this: %w", errors.ErrUnsupported))
	})
	k.o.Topic = topic
	refused := make(chan error, 1000)
	k.o.Observe = func(_ consume.Event, d consume.Decision) {
		if d.Reason == "dead_letter_queue" {
			refused <- d.Err
		}
	}
	k.start()
	b.Publish(t, "e1", "k", "body e1")
	select {
	case err := <-refused:
		if err == nil || !strings.Contains(err.Error(), "dead-letter topic") {
			t.Errorf("the decision has the error %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the topic that is not there took the letter")
	}
	// What no one has must not be acknowledged, and is not handled again.
	k.keeps(1)
	declare(t)
	m := next(t)
	k.acknowledged()
	if n := k.ran("e1"); n != 1 {
		t.Errorf("the event ran %d times", n)
	}
	l := k.q.only(t)
	if m.Body != "body e1" {
		t.Errorf("the body is %q", m.Body)
	}
	for name, want := range map[string]string{
		"x-a": "1", prefix + "id": "e1", prefix + "source": "/conform", prefix + "type": "test",
		consume.HeaderReason: "terminal", consume.HeaderErrorType: "terminal_error", consume.HeaderAttempts: "1", consume.HeaderEventID: "e1",
		consume.HeaderError: `no account "***" at https://[redacted]@db/?[redacted] for this: unsupported operation`,
		consume.HeaderQueue: "conform", consume.HeaderGroup: "conform", consume.HeaderLetter: l.ID, consume.HeaderCause: l.Fingerprint(),
	} {
		if m.Headers[name] != want {
			t.Errorf("header %s is %q, want %q", name, m.Headers[name], want)
		}
	}
	if at, err := time.Parse(time.RFC3339, m.Headers[consume.HeaderDeadAt]); err != nil || time.Since(at) > time.Hour {
		t.Errorf("it died at %q", m.Headers[consume.HeaderDeadAt])
	}
	if text := fmt.Sprint(m.Headers); strings.Contains(text, "planted") {
		t.Errorf("a secret is in %s", text)
	}
	// What cannot be decoded goes there as it came.
	b.PublishRaw(t, `{"specversion":`)
	if m := next(t); m.Body != `{"specversion":` || m.Headers[consume.HeaderReason] != deadletter.ReasonUndecodable || m.Headers[consume.HeaderError] == "" {
		t.Errorf("got %+v", m)
	}
	k.acknowledged()
	if n := k.q.count(); n != 2 {
		t.Errorf("%d letters in the store, want 2", n)
	}
	// One that is too large for the topic with what says why it is there is told of.
	large := deadletter.Letter{ID: "large", EventID: "e2", Reason: "terminal", Payload: make([]byte, 1<<20-100)}
	if err := topic.Put(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	m = next(t)
	if m.Headers[consume.HeaderLetter] != "large" || len(m.Body) != len(large.Payload) && (m.Body != "" || m.Headers[consume.HeaderLeftOut] != "1048476 bytes") {
		t.Errorf("a body of %d bytes, headers %v", len(m.Body), m.Headers)
	}
}
