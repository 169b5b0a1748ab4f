package consume

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
