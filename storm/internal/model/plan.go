package model

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// Plan is how the instances of a caller call: a policy, and what replaces parts
// of its decisions in a comparison.
type Plan struct {
	// Given is the policy that the Retryers judge and run, Policy the same with
	// its defaults.
	Given, Policy forbear.Policy
	Baseline      Baseline
	// Timeout is that of an attempt, and RTT the network round trip, in ns: the
	// engine's clock is an integer.
	Timeout, RTT int64
	// RTTExponential draws each way of the round trip instead of halving it.
	RTTExponential bool
	// Limit is the number of retries after the first attempt.
	Limit int
	// Breaker says that the policy has a circuit breaker.
	Breaker bool
	// Durable says that a call that is refused for now is postponed. With a baseline in
	// the place of the budget a refusal is final, as it is in the original.
	Durable bool
	// ThrottleK and ThrottleWindow are those of adaptive throttling; K of 0 is
	// off.
	ThrottleK      float64
	ThrottleWindow time.Duration
	// NewBudget, when set, makes the budget of each instance.
	NewBudget func() budget.Budget
}

// Baseline is what forbear forbids and others do. Each field replaces one part
// of a real decision; the zero value replaces nothing.
type Baseline struct {
	// Wait is none, fixed, exponential or equal; empty is the decision's wait.
	Wait string
	// NoBudget lets every retry pass.
	NoBudget bool
	// Bucket, unless its Size is 0, takes the place of the policy's budget.
	Bucket Bucket
	// Oblivious callers retry what a layer below has given up, and retry inside
	// another layer's retry.
	Oblivious bool
	// Unchecked accepts what the standard's ranges exclude.
	Unchecked bool
}

// Bucket is a full bucket of Size retries to which every first attempt adds
// Deposit.
type Bucket struct{ Deposit, Size float64 }

// Keeps reports whether something must outlive the attempts of p: the permits of
// a breaker, or postponed calls.
func (p *Plan) Keeps() bool { return p.Breaker || p.Durable }
