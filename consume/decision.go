package consume

import "time"

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

// Label returns the label of the decision in metrics, one of few: "done",
// "duplicate", "waiting" (its turn or its time has not come, or another run has
// it), "retry", "postponed" (the budget or the breaker is the reason),
// "dead_lettered", "held", "store_error" (the store, or the queue of dead letters,
// did not respond) or "canceled".
func (d Decision) Label() string {
	switch d.Action {
	case Ack:
		if d.Duplicate {
			return "duplicate"
		}
		return "done"
	case DeadLettered:
		if d.Reason == "duplicate" {
			return "duplicate"
		}
		return "dead_lettered"
	case Hold:
		return "held"
	}
	switch d.Reason {
	case "order", "early", "in_progress", "deaf":
		return "waiting"
	case "store", "dead_letter_queue":
		return "store_error"
	case "canceled":
		return "canceled"
	}
	if d.Err == nil {
		return "postponed"
	}
	return "retry"
}
