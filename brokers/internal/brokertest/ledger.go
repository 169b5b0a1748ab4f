package brokertest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
)

// ledger has what was published, and is told by the handler, the consumer and the queue of
// dead letters what became of it. It holds that against what the package promises.
type ledger struct {
	ordered bool
	most    int // attempts

	mu      sync.Mutex
	entries map[string]*entry
	keys    map[string][]*entry // as published
	over    int                 // those that are done or have a letter
	copies  int                 // effects beyond the first
	crashed map[int]bool        // processes, by their number
	wrong   []string
	wrongs  int
}

// kind is what becomes of an event.
type kind int

const (
	plain       kind = iota // done at once
	transient               // done after some failures
	exhausted               // fails until it may not be tried again
	poisonous               // fails for good
	undecodable             // cannot be decoded
)

// entry is one event.
type entry struct {
	id, key   string
	seq       int // in its key
	kind      kind
	fails     int           // of a transient
	floor     time.Duration // how long a failure asks to wait
	anonymous bool          // published without an id

	ended    bool  // for its order: the handler has had its last word
	attempt  int   // the latest
	repeats  bool  // that one may not have counted
	process  int   // in which it was
	effects  []int // the processes in which it was done
	recorded []int // those that knew so at the end
	letter   *deadletter.Letter
}

func newLedger(most int, ordered bool) *ledger {
	return &ledger{ordered: ordered, most: most, entries: map[string]*entry{}, keys: map[string][]*entry{}, crashed: map[int]bool{}}
}

// body is made of the id, which is its first word: what arrives tells which it should be. Its
// length is up to 4 kB.
func body(id string) string {
	sum := sha256.Sum256([]byte(id))
	return id + " " + strings.Repeat(fmt.Sprintf("%x", sum), 1+int(sum[0])/4)
}

const broken = `{"specversion":`

// body is what the broker is given of an event.
func (x *entry) body() string {
	if x.kind == undecodable {
		return broken + body(x.id)
	}
	return body(x.id)
}

func (l *ledger) publish(x *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[x.id] = x
	if x.key != "" {
		x.seq = len(l.keys[x.key])
		l.keys[x.key] = append(l.keys[x.key], x)
	}
}

// left counts the events that are neither done nor dead letters.
func (l *ledger) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries) - l.over
}

// ran reports whether the handler has had an event.
func (l *ledger) ran(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[id].attempt > 0
}

// crash notes that a process dies: what it did from now on may not be known.
func (l *ledger) crash(process int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crashed[process] = true
}

// violated notes what was promised otherwise. The caller holds mu.
func (l *ledger) violated(x *entry, format string, args ...any) {
	if l.wrongs++; len(l.wrong) < 20 {
		if x != nil {
			format = fmt.Sprintf("%s (key %s, %d, kind %d): ", x.id, x.key, x.seq, x.kind) + format
		}
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

// entry returns the entry of a body, which has to be whole. The caller holds mu.
func (l *ledger) entry(payload []byte, where string) *entry {
	id, _, _ := strings.Cut(strings.TrimPrefix(string(payload), broken), " ")
	x := l.entries[id]
	switch {
	case x == nil:
		l.violated(nil, "%s: %.40q was never published", where, payload)
	case x.body() != string(payload):
		l.violated(x, "%s: %d bytes that are not its body", where, len(payload))
	}
	return x
}

// work is how long a handler takes: more than it takes to publish, so that faults meet events.
const work = 4 * time.Millisecond

// handler is that of one process.
func (l *ledger) handler(process int) consume.Handler {
	return func(ctx context.Context, e consume.Event) error {
		n := consume.Attempt(ctx)
		x := l.begin(process, n, e)
		if x == nil {
			return nil
		}
		time.Sleep(work)
		return l.finish(ctx, process, n, x)
	}
}

func (l *ledger) begin(process, n int, e consume.Event) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.entry(e.Data, "handler")
	if x == nil {
		return nil
	}
	if !x.anonymous && (e.ID != x.id || e.Source != "/conform" || e.Type != "test" || e.Key != x.key || !carried(e.Headers)) {
		l.violated(x, "handler: got id %q, source %q, type %q, key %q, headers %v", e.ID, e.Source, e.Type, e.Key, e.Headers)
	}
	// Of a process that crashed no attempt is known that was not given back.
	repeats := x.repeats || l.crashed[x.process]
	if n != x.attempt+1 && !(repeats && n >= 1 && n <= x.attempt) {
		l.violated(x, "attempt %d after attempt %d", n, x.attempt)
	}
	if n > l.most {
		l.violated(x, "attempt %d, the limit is %d", n, l.most)
	}
	x.attempt, x.process, x.repeats = n, process, false
	if l.ordered {
		for _, before := range l.keys[x.key][:x.seq] {
			if !before.ended {
				l.violated(x, "it runs before %s (%d) has ended", before.id, before.seq)
				break
			}
		}
	}
	return x
}

func (l *ledger) finish(ctx context.Context, process, n int, x *entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.repeats = ctx.Err() != nil // a failure is none then, see canceled
	switch {
	case x.kind == poisonous:
		x.ended = true
		return forbear.Terminal(errors.New("bad"))
	case x.kind == exhausted, x.kind == transient && n <= x.fails:
		x.ended = n == l.most
		return forbear.Retryable(errors.New("busy"), forbear.Hint{Floor: x.floor})
	}
	x.ended = true
	x.effects = append(x.effects, process)
	switch {
	case len(x.effects) > 1:
		l.copies++
	case x.letter == nil:
		l.over++
	}
	return nil
}

// observe is told each decision of one process.
func (l *ledger) observe(process int) func(consume.Event, consume.Decision) {
	return func(e consume.Event, d consume.Decision) {
		done := d.Action == consume.Ack && !d.Duplicate
		if !done && d.Reason != "canceled" {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		switch x := l.entry(e.Data, "decision"); {
		case x == nil:
		case done:
			x.recorded = append(x.recorded, process)
		case x.process == process:
			x.repeats = true
		}
	}
}

// Put implements consume.DeadLetters: a letter that it has is dropped.
func (l *ledger) Put(_ context.Context, d deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.entry(d.Payload, "letter")
	if x == nil || x.letter != nil && x.letter.ID == d.ID {
		return nil
	}
	if x.letter != nil {
		l.violated(x, "it has a second letter")
		return nil
	}
	if x.letter = &d; len(x.effects) == 0 {
		l.over++
	}
	want, attempts := map[kind]string{poisonous: "terminal", exhausted: "exhausted", undecodable: deadletter.ReasonUndecodable}[x.kind], x.attempt
	switch {
	case d.Reason != want || d.Attempts != attempts:
		l.violated(x, "a letter for %q after %d attempts, want %q after %d", d.Reason, d.Attempts, want, attempts)
	case x.kind != undecodable && (d.EventID != x.id || d.Source != "/conform" || d.PartitionKey != x.key || !carried(d.Headers)):
		l.violated(x, "its letter has id %q, source %q, key %q, headers %v", d.EventID, d.Source, d.PartitionKey, d.Headers)
	}
	return nil
}

// carried reports whether the headers are those that Publish sends.
func carried(headers []deadletter.Header) bool {
	return slices.Contains(headers, deadletter.Header{Name: "x-a", Value: "1"}) && slices.Contains(headers, deadletter.Header{Name: "traceparent", Value: Traceparent})
}

// close says what is wrong with the whole, when the broker has nothing left.
func (l *ledger) close(t *testing.T, weather string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	done, letters := 0, 0
	for _, x := range l.entries {
		if len(x.effects) > 0 {
			done++
		}
		if x.letter != nil {
			letters++
		}
		l.closeEntry(x)
	}
	t.Logf("%d events; %s; %d done, %d letters, %d done again after a crash; %d violations", len(l.entries), weather, done, letters, l.copies, l.wrongs)
	for _, text := range l.wrong {
		t.Error(text)
	}
}

func (l *ledger) closeEntry(x *entry) {
	switch dies := x.kind >= exhausted; {
	case len(x.effects) == 0 && x.letter == nil:
		l.violated(x, "it is lost: neither done nor a letter, after attempt %d", x.attempt)
	case dies != (x.letter != nil) || dies == (len(x.effects) > 0):
		l.violated(x, "done %d times, letter %v", len(x.effects), x.letter != nil)
	}
	if len(x.effects) == 0 {
		return
	}
	// One effect is known as such. Others only a process has had that crashed before it
	// could say so.
	others := slices.Clone(x.effects)
	if i := slices.Index(others, append(x.recorded, -1)[0]); i >= 0 {
		others = slices.Delete(others, i, i+1)
	}
	if len(x.recorded) != 1 || slices.ContainsFunc(others, func(p int) bool { return !l.crashed[p] }) {
		l.violated(x, "done in processes %v, of which it is recorded by %v; crashed are %v", x.effects, x.recorded, l.crashed)
	}
}
