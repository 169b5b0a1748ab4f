package idemfixture

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
)

// message is an event on its way through the broker.
type message struct {
	event     consume.Event
	group     string
	handler   string
	crash     crashPoint
	consumer  int // which of the processes
	published time.Time

	attempts int
	settled  bool
	timer    *time.Timer // of the next delivery
}

// broker delivers messages to consumers until they are acknowledged, and counts
// what comes of them. Its times are those of the bubble.
type broker struct {
	t       *testing.T
	consume func(group string, process int) *consume.Consumer

	mu       sync.Mutex
	idle     *sync.Cond
	open     int // deliveries under way or due
	slots    chan struct{}
	messages []*message
	handler  string // of messages without their own

	effects, attempts, acks int
	waits                   []time.Duration
}

// workers is how many messages a broker hands out at a time.
const workers = 8

func newBroker(t *testing.T) *broker {
	b := &broker{t: t, slots: make(chan struct{}, workers), handler: "ok"}
	b.idle = sync.NewCond(&b.mu)
	return b
}

// publish brings a message in.
func (b *broker) publish(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.published = time.Now()
	b.messages = append(b.messages, m)
	b.deliver(m)
}

// deliver hands m out now. The caller holds mu.
func (b *broker) deliver(m *message) {
	b.open++
	go func() {
		b.slots <- struct{}{}
		defer func() {
			<-b.slots
			b.mu.Lock()
			defer b.mu.Unlock()
			b.open--
			b.idle.Broadcast()
		}()
		process := &process{message: m}
		ctx := context.WithValue(context.Background(), processKey{}, process)
		d := b.consume(m.group, m.consumer).Consume(ctx, m.event)
		if !process.dead.Load() {
			b.settle(m, d)
		}
	}()
}

// settle does what a consumer has decided.
func (b *broker) settle(m *message, d consume.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.crash == crashBeforeAck {
		m.crash = ""
		return
	}
	switch d.Action {
	case consume.Ack, consume.DeadLettered:
		b.acks++
		m.settled = true
	case consume.RetryAt:
		b.open++
		m.timer = time.AfterFunc(time.Until(d.At), func() { b.due(m) })
	case consume.Hold:
		b.t.Errorf("event %s is held: %s", m.event.ID, d.Reason)
	}
}

// due hands a message out whose time has come.
func (b *broker) due(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if m.timer != nil {
		m.timer = nil
		b.deliver(m)
	}
}

// again delivers a message at once, whatever had been planned for it.
func (b *broker) again(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.timer != nil && m.timer.Stop() {
		m.timer = nil
		b.open--
	}
	b.deliver(m)
}

// find returns the latest message of an event.
func (b *broker) find(id string) *message {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.messages) - 1; i >= 0; i-- {
		if b.messages[i].event.ID == id {
			return b.messages[i]
		}
	}
	b.t.Fatalf("event %q was never delivered", id)
	return nil
}

// unacknowledged lists what a consumer that starts anew is given again.
func (b *broker) unacknowledged() (list []*message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		if !m.settled {
			list = append(list, m)
		}
	}
	return list
}

// wait waits until nothing is under way or due.
func (b *broker) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.open > 0 {
		b.idle.Wait()
	}
}

// process is one that was given a message. Once it is dead, nothing that it does
// reaches a store or the broker.
type process struct {
	*message
	dead atomic.Bool
}

type processKey struct{}

// died reports whether it is a dead process that calls.
func died(ctx context.Context) bool {
	p, ok := ctx.Value(processKey{}).(*process)
	return ok && p.dead.Load()
}

// outlived is a store of keys that dead processes do not reach.
type outlived struct{ idempotency.Store }

func (s outlived) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Verdict, error) {
	if died(ctx) {
		return idempotency.Verdict{}, idempotency.ErrFenced
	}
	return s.Store.Claim(ctx, c)
}

func (s outlived) Renew(ctx context.Context, t idempotency.Token, lease time.Duration) error {
	if died(ctx) {
		return idempotency.ErrFenced
	}
	return s.Store.Renew(ctx, t, lease)
}

func (s outlived) Complete(ctx context.Context, t idempotency.Token, a idempotency.Response, retention time.Duration) error {
	if died(ctx) {
		return idempotency.ErrFenced
	}
	return s.Store.Complete(ctx, t, a, retention)
}

func (s outlived) Release(ctx context.Context, t idempotency.Token) error {
	if died(ctx) {
		return idempotency.ErrFenced
	}
	return s.Store.Release(ctx, t)
}

func (s outlived) Hold(ctx context.Context, t idempotency.Token, why string) error {
	if died(ctx) {
		return idempotency.ErrFenced
	}
	return s.Store.Hold(ctx, t, why)
}

var errDied = errors.New("the process died")

// handle is the handler of all consumers. A redrive comes without a message.
func (b *broker) handle(ctx context.Context, e consume.Event) error {
	p, _ := ctx.Value(processKey{}).(*process)
	var m *message
	if p != nil {
		m = p.message
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name, attempt := b.handler, 1
	b.attempts++
	if m != nil {
		m.attempts++
		attempt = m.attempts
		if m.handler != "" {
			name = m.handler
		}
		if m.crash == crashBeforeEffect {
			m.crash = ""
			p.dead.Store(true)
			return errDied
		}
	}
	if err := outcome(name, attempt); err != nil {
		return err
	}
	b.effects++
	if m != nil {
		b.waits = append(b.waits, time.Since(m.published))
		if m.crash == crashAfterEffect {
			m.crash = ""
			p.dead.Store(true)
			return errDied
		}
	}
	return nil
}

// outcome is what a handler of some name does on an attempt.
func outcome(name string, attempt int) error {
	failure := forbear.Retryable(errors.New("not now"), forbear.Hint{})
	switch name {
	case "ok", "succeed", "success":
		return nil
	case "always_fail":
		return failure
	case "permanent", "terminal":
		return forbear.Terminal(errors.New("never"))
	case "panic":
		panic("the scenario wants it")
	}
	if n, err := failures(name); err != nil {
		return fmt.Errorf("handler %q: %w", name, err) // known refused it
	} else if attempt <= n {
		return failure
	}
	return nil
}

// failures reads "fail_once" and "fail_3": how often a handler fails before it
// succeeds.
func failures(name string) (int, error) {
	rest, ok := strings.CutPrefix(name, "fail_")
	if !ok {
		return 0, errors.New("is not understood")
	}
	if rest == "once" || rest == "then_ok" {
		return 1, nil
	}
	return strconv.Atoi(rest)
}

// known fails the test for a handler that nobody knows.
func known(t *testing.T, name string) string {
	t.Helper()
	switch name {
	case "", "ok", "succeed", "success", "always_fail", "permanent", "terminal", "panic":
		return name
	}
	if _, err := failures(name); err != nil {
		t.Fatalf("handler %q is not understood", name)
	}
	return name
}
