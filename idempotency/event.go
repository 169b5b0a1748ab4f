package idempotency

import "time"

// Event is what happened to one request.
type Event struct {
	Result  Result
	Attempt int           // of a run
	Took    time.Duration // of the handler; 0 where it did not run
	Waited  time.Duration // for another's run
}

// Result is the label of an [Event].
type Result string

// What can happen to a request.
const (
	Executed      Result = "executed"
	Deferred      Result = "deferred" // executed; its end waits for the store, see [Backlog]
	Replayed      Result = "replayed"
	Busy          Result = "in_progress"
	Reused        Result = "mismatch"
	Invalid       Result = "invalid"
	OutcomeHeld   Result = "held"
	NotReplayable Result = "not_replayable"
	StoreError    Result = "store_error"
	Fenced        Result = "fenced"
	TooLarge      Result = "too_large"
	Overloaded    Result = "overloaded"
	Stalled       Result = "stalled" // its body stood still, or took too long
	NoPrincipal   Result = "unauthenticated"
)

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
