package idempotency

// OutcomeLost is the label of a run that has ended, and whose end the store did not
// take: its key will be held. See [Event.Label].
const OutcomeLost Result = "outcome_lost"

// Label returns the label of the event in metrics: its Result, but [OutcomeLost]
// for a [StoreError] after the handler had run.
func (e Event) Label() string {
	if e.Result == StoreError && e.Attempt > 0 {
		return string(OutcomeLost)
	}
	return string(e.Result)
}
