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
	Headers       []deadletter.Header // all of them, in order
	Data          []byte

	// Redrive says that the event comes back from the dead-letter queue, on
	// purpose.
	Redrive bool
}

// Handler processes an event.
type Handler func(ctx context.Context, e Event) error

// Progress is what an adapter keeps with an event that is to come again, and
// gives back. Without it (the zero value) the claims in the store count as
// attempts.
type Progress struct {
	State   forbear.State        `json:"state"`
	Claims  int                  `json:"claims,omitempty"` // that ended in order
	History []deadletter.Attempt `json:"history,omitempty"`
	// Pending is the failure whose retry the budget or the breaker has put
	// off: the decision is asked for again, without another attempt.
	Pending *Pending `json:"pending,omitempty"`
}

// Pending is a failure that still waits for its decision.
type Pending struct {
	Class forbear.Class `json:"class"`
	Type  string        `json:"type"`
}

// Action is what an adapter is to do with an event.
type Action uint8

const (
	// Ack: it is done, now or before.
	Ack Action = iota + 1
	// RetryAt: it is to come again at the given time; no acknowledgement.
	RetryAt
	// DeadLettered: it is in the dead-letter queue; to be acknowledged.
	DeadLettered
	// Hold: nobody may run it before an operator has settled it; no
	// acknowledgement.
	Hold
)

// Decision is what became of an event.
type Decision struct {
	Action    Action
	At        time.Time // of RetryAt
	Reason    string    // "done", "duplicate", "in_progress", or why it failed
	Duplicate bool      // the handler was not called
	Progress  Progress  // of RetryAt, to be given back
	Err       error     // the handler's or the store's
}

// Acknowledge reports whether the source may forget the event.
func (d Decision) Acknowledge() bool { return d.Action == Ack || d.Action == DeadLettered }

// DeadLetters takes what cannot be done; a deadletter.Store does.
type DeadLetters interface {
	Put(ctx context.Context, l deadletter.Letter) error
}
