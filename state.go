package forbear

import (
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/reason"
)

// State is what one logical call has used so far. It is plain data, and durable
// calls store it between their attempts, except for the facts of the moment.
// The zero value is the state of a call that needs no idempotency key and
// whose first attempt has just failed.
type State struct {
	// Attempt is the number of the latest attempt, the first being 1; 0 is
	// read as 1.
	Attempt int `json:"attempt"`
	// Start is when the logical call began. The total duration counts
	// from here; a zero Start means now.
	Start time.Time `json:"start,omitzero"`
	// Deadline is the caller's own; zero means none.
	Deadline time.Time `json:"deadline,omitzero"`
	// PrevWait is the wait before the latest attempt, for decorrelated jitter.
	PrevWait time.Duration `json:"prev_wait,omitempty"`
	// DNSFailures counts the attempts that failed at name resolution, the
	// latest included; 0 means that they were not counted.
	DNSFailures int `json:"dns_failures,omitempty"`
	// Refreshes counts the attempts that followed a token refresh. They do
	// not count as retries (R-9 against R-4).
	Refreshes int `json:"refreshes,omitempty"`
	// Resends counts the retries that took over a silent re-send of the
	// transport below; only the first goes out at once.
	Resends int `json:"resends,omitempty"`
	// Limit is the caller's own number of retries, when Limited is set.
	Limit   int  `json:"limit,omitempty"`
	Limited bool `json:"limited,omitempty"`

	// NeedsKey says that the operation is not idempotent by itself (POST,
	// PATCH), so that only Key makes a retry safe.
	NeedsKey bool `json:"needs_key,omitempty"`
	// Key is the idempotency key. It is stored with the request, not here.
	Key string `json:"-"`
	// Unreplayable says that the request cannot be sent again: its body is
	// gone.
	Unreplayable bool `json:"unreplayable,omitempty"`
	// Refreshable says that fresh credentials can be fetched.
	Refreshable bool `json:"refreshable,omitempty"`

	// The fields below describe the moment of a decision. They are never stored, since
	// they may differ at the next failure, and their zero values object to no retry. A
	// [Retryer] fills in what it knows; only callers of [Decide] set all of them.

	// Breaker is where the dependency's circuit breaker stands.
	Breaker breaker.State `json:"-"`
	// Unhealthy says that a health gate, the policy's or the caller's, stops
	// retries.
	Unhealthy bool `json:"-"`
	// BudgetSpent says that the retry budget has no retry left. A [Retryer] does
	// not set it: it takes the retry from the budget after the decision, so that
	// no two calls are granted the same one.
	BudgetSpent bool `json:"-"`
	// NotOwner says that another service owns the retries of this dependency.
	NotOwner bool `json:"-"`
	// ExhaustedBelow says that a layer below has already used its retries.
	ExhaustedBelow bool `json:"-"`
	// Inner says that the call runs inside a retry of an outer layer, which
	// leaves it a single attempt.
	Inner bool `json:"-"`
}

// attempt returns the number of the latest attempt.
func (s *State) attempt() int { return max(s.Attempt, 1) }

// retries returns the number of retries that count against the limit.
func (s *State) retries() int { return max(s.attempt()-1-s.Refreshes, 0) }

// keyed reports whether the call carries a valid idempotency key.
func (s *State) keyed() bool { return s.Key != "" && len(s.Key) <= layer.MaxKeyLen }

// After returns the state that follows the decision d: on a retry, that of the
// next attempt; on a stop, s itself.
func (s State) After(d Decision) State {
	s.Attempt = s.attempt()
	if !d.Retry {
		return s
	}
	s.Attempt++
	s.PrevWait = d.Wait
	switch d.Reason {
	case reason.Refresh:
		s.Refreshes++
	case reason.Resend:
		s.Resends++
	}
	return s
}

// Decision says what follows one failure.
type Decision struct {
	// Retry says whether another attempt may be made, after Wait.
	Retry bool
	Wait  time.Duration
	// Floor and Ceiling bound every Wait that could have been drawn here, the
	// hint's spread included.
	Floor, Ceiling time.Duration
	Reason         Reason
	// Class is the failure's class under the policy's overrides.
	Class Class
	// Cost is what the retry costs the budget.
	Cost budget.Cost
	// Paced says that the budget is spent and the retry one of those that
	// durable work may make beyond it.
	Paced bool
	// free says that the retry was not taken from the budget: see Failure.free.
	free bool
	// Level is the budget's reading, when it refused the retry.
	Level budget.Level
}

// stop returns d as a refusal for the given reason.
func (d Decision) stop(r Reason) Decision {
	return Decision{Reason: r, Class: d.Class, Cost: d.Cost}
}

// Reason says why a decision fell as it did; its values are those of package reason.
type Reason = reason.Reason
