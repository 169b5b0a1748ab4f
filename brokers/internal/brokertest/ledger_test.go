package brokertest

import (
	"strings"
	"testing"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// What a ledger is there for it sees, and nothing else.
func TestLedger(t *testing.T) {
	headers := []deadletter.Header{{Name: "x-a", Value: "1"}, {Name: "traceparent", Value: Traceparent}}
	event := func(x *entry) consume.Event {
		return consume.Event{ID: x.id, Source: "/conform", Type: "test", Key: x.key, Headers: headers, Data: []byte(x.body())}
	}
	letter := func(x *entry, reason string, attempts int) deadletter.Letter {
		return deadletter.Letter{ID: "l" + x.id, EventID: x.id, Source: "/conform", PartitionKey: x.key, Headers: headers, Payload: []byte(x.body()), Reason: reason, Attempts: attempts}
	}
	done := consume.Decision{Action: consume.Ack}
	for name, c := range map[string]struct {
		run  func(l *ledger, x, y *entry)
		want string // nothing: all is well
	}{
		"done": {func(*ledger, *entry, *entry) {}, ""},
		"lost": {func(l *ledger, x, _ *entry) { x.effects, x.recorded = nil, nil }, "it is lost"},
		"acknowledged before its end was stored": {func(l *ledger, x, _ *entry) {
			l.crash(1)
			x.recorded = nil
		}, "recorded by []"},
		"done again after a crash": {func(l *ledger, x, _ *entry) {
			l.crash(1)
			x.recorded = nil
			_ = l.finish(t.Context(), 2, 1, x)
			l.observe(2)(event(x), done)
		}, ""},
		"done again": {func(l *ledger, x, _ *entry) {
			_ = l.finish(t.Context(), 2, 1, x)
			l.observe(2)(event(x), done)
		}, "done in processes [1 2]"},
		"another body": {func(l *ledger, x, _ *entry) {
			e := event(x)
			e.Data = e.Data[:len(e.Data)-1]
			l.begin(1, 2, e)
		}, "not its body"},
		"no one's body":            {func(l *ledger, x, _ *entry) { l.begin(1, 2, consume.Event{Data: []byte("other")}) }, "was never published"},
		"without its headers":      {func(l *ledger, x, _ *entry) { e := event(x); e.Headers = nil; l.begin(1, 2, e) }, "headers []"},
		"an attempt twice":         {func(l *ledger, x, _ *entry) { l.begin(1, 1, event(x)) }, "attempt 1 after attempt 1"},
		"an attempt after a crash": {func(l *ledger, x, _ *entry) { l.crash(1); l.begin(2, 1, event(x)) }, ""},
		"an attempt left out":      {func(l *ledger, x, _ *entry) { l.begin(1, 3, event(x)) }, "attempt 3 after attempt 1"},
		"an attempt too many":      {func(l *ledger, x, _ *entry) { x.attempt = 4; l.begin(1, 5, event(x)) }, "the limit is 4"},
		"out of order":             {func(l *ledger, x, y *entry) { x.ended = false; l.begin(1, 2, event(y)) }, "runs before x"},
		"a letter of what is done": {func(l *ledger, x, _ *entry) { _ = l.Put(t.Context(), letter(x, "terminal", 1)) }, "a letter for"},
		"a letter": {func(l *ledger, x, _ *entry) {
			x.kind, x.effects, x.recorded = poisonous, nil, nil
			_ = l.Put(t.Context(), letter(x, "terminal", 1))
			_ = l.Put(t.Context(), letter(x, "terminal", 1))
		}, ""},
		"a letter with another count": {func(l *ledger, x, _ *entry) {
			x.kind, x.effects, x.recorded = poisonous, nil, nil
			_ = l.Put(t.Context(), letter(x, "terminal", 2))
		}, "after 2 attempts"},
		"a letter without its headers": {func(l *ledger, x, _ *entry) {
			x.kind, x.effects, x.recorded = poisonous, nil, nil
			d := letter(x, "terminal", 1)
			d.Headers = nil
			_ = l.Put(t.Context(), d)
		}, "headers []"},
	} {
		t.Run(name, func(t *testing.T) {
			l, x, y := newLedger(4, true), &entry{id: "x", key: "k"}, &entry{id: "y", key: "k"}
			for _, z := range []*entry{x, y} {
				l.publish(z)
				l.begin(1, 1, event(z))
				_ = l.finish(t.Context(), 1, 1, z)
				l.observe(1)(event(z), done)
			}
			c.run(l, x, y)
			l.closeEntry(x)
			got := strings.Join(l.wrong, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
