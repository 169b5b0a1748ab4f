package consume

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
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

	trace  edge.TraceContext // of a structured event, beside its headers
	letter string            // the id of the letter that it comes from
}

// TraceContext returns the place in a trace that the event came from: that of its
// headers traceparent and tracestate, or of the CloudEvents attributes of these names;
// the zero value when it has none. The context of a [Handler] carries it.
func (e *Event) TraceContext() edge.TraceContext {
	for _, prefix := range [...]string{"", HTTP.Prefix, Kafka.Prefix, AMQP.Prefix} {
		if t := edge.ParseTraceContext(header(e.Headers, prefix+"traceparent"), header(e.Headers, prefix+"tracestate")); t != (edge.TraceContext{}) {
			return t
		}
	}
	return e.trace
}

// Handler processes an event.
type Handler func(ctx context.Context, e Event) error
