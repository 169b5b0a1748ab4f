package forbear

import (
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
)

// Facts are what is known around a call at the moment of a decision. Nothing of
// them is stored: at the next failure they may be others. The zero value speaks
// against no retry.
type Facts struct {
	// Breaker is where the dependency's circuit breaker stands.
	Breaker breaker.State
	// Unhealthy says that a health gate, the policy's or the caller's, stops
	// retries.
	Unhealthy bool
	// BudgetSpent says that the retry budget has no retry left. A [Retryer] does
	// not set it: it takes the retry from the budget after the decision, so that
	// no two calls are granted the same one.
	BudgetSpent bool
	// NotOwner says that another service owns the retries of this dependency.
	NotOwner bool
	// ExhaustedBelow says that a layer below has already used its retries.
	ExhaustedBelow bool
	// Inner says that the call runs inside a retry of an outer layer, which
	// leaves it a single attempt.
	Inner bool
}

// facts adds to what a call knows of itself what its Retryer knows of the moment.
func (r *Retryer) facts(known Facts, now time.Time) Facts {
	if r.breaker != nil && r.breaker.State() == breaker.Open {
		known.Breaker = breaker.Open
	}
	known.Unhealthy = known.Unhealthy || !r.looksHealthy(now)
	known.NotOwner = known.NotOwner || r.policy.Owner != "" && r.service != "" && r.policy.Owner != r.service
	return known
}

// looksHealthy asks the policy's health gate and the caller's. Only retries are
// asked about: first attempts go on, so that the gates see a recovery.
func (r *Retryer) looksHealthy(now time.Time) bool {
	return (r.gate == nil || r.gate.Healthy(now)) && (r.healthy == nil || r.healthy(now))
}

// Health reads the health gates, the policy's and the caller's; ok is false where
// there is none. It is for metrics and admin pages: a caller learns of a closed gate
// by the reason of a refusal.
func (r *Retryer) Health(now time.Time) (reading health.Reading, ok bool) {
	if r.gate == nil && r.healthy == nil {
		return reading, false
	}
	reading.Healthy = r.looksHealthy(now)
	if r.gate != nil {
		reading.Rate, reading.Counted = r.gate.Rate(now), true
	}
	return reading, true
}
