package consume

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// Event is one message. ID and Source identify it.
type Event struct {
	ID, Source    string
	Type, Subject string
	// Key is what the broker orders by: a partition key. Only ordered
	// consumers look at it.
	Key           string
	Time          time.Time
	ContentType   string
	CorrelationID string
	// Headers are all of them, in order. The handler sees them as they came;
	// a dead letter keeps the names of those that carry credentials, not the
	// values.
	Headers []deadletter.Header
	Data    []byte

	// Redrive says that the event comes back from the dead-letter queue, on
	// purpose: see [Consumer.Redrive].
	Redrive bool

	trace  forbear.TraceContext // of a structured event, beside its headers
	letter string               // the id of the letter that it comes from
}

// TraceContext returns the place in a trace that the event came from: that of its
// headers traceparent and tracestate, or of the CloudEvents attributes of these names;
// the zero value when it has none. The context of a [Handler] carries it.
func (e *Event) TraceContext() forbear.TraceContext {
	for _, prefix := range [...]string{"", HTTP.Prefix, Kafka.Prefix, AMQP.Prefix} {
		if t := forbear.ParseTraceContext(header(e.Headers, prefix+"traceparent"), header(e.Headers, prefix+"tracestate")); t != (forbear.TraceContext{}) {
			return t
		}
	}
	return e.trace
}

// Handler processes an event.
type Handler func(ctx context.Context, e Event) error

// Action is what an adapter is to do with an event.
type Action uint8

const (
	// Ack: it is done, now or before.
	Ack Action = iota + 1
	// RetryAt: it is to come again at the given time; no acknowledgement.
	RetryAt
	// DeadLettered: it is in the dead-letter queue; to be acknowledged.
	DeadLettered
	// Hold: it must not run before an operator has resolved it; no
	// acknowledgement.
	Hold
)

var actionNames = [...]string{Ack: "ack", RetryAt: "retry_at", DeadLettered: "dead_lettered", Hold: "hold"}

// String returns "ack", "retry_at", "dead_lettered" or "hold".
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return ""
}

// Decision is what became of an event.
type Decision struct {
	Action    Action
	At        time.Time // of RetryAt
	Reason    string    // "done", "duplicate", "in_progress", or why it failed
	Duplicate bool      // the handler was not called
	Err       error     // the handler's or the store's
}

// Acknowledge reports whether the source may forget the event.
func (d Decision) Acknowledge() bool { return d.Action == Ack || d.Action == DeadLettered }

// Wait returns how long from now on the event is to stay away when it is not
// acknowledged: until At, or a minute of a Hold.
func (d Decision) Wait(now time.Time) time.Duration {
	if d.Action == RetryAt {
		return max(d.At.Sub(now), 0)
	}
	return time.Minute
}

// DeadLetters takes what cannot be done. A deadletter.Store does; its Put
// raises the alert that R-8 demands, and other implementations have to.
type DeadLetters interface {
	Put(ctx context.Context, l deadletter.Letter) error
}
