package model

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// Plan is how the instances of a caller call: a policy, and what replaces parts
// of its decisions in a comparison.
type Plan struct {
	Given    forbear.Policy // what the Retryer judges and runs
	Policy   forbear.Policy // the same with defaults
	Baseline Baseline
	Timeout  int64 // of an attempt, in ns
	RTT      int64 // network round trip, in ns
	// RTTExponential draws each way of the round trip instead of halving it.
	RTTExponential bool
	Limit          int // retries
	Breaker        bool
	// Durable says that what is refused for now is put off. With a baseline in
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
// of a real decision.
type Baseline struct {
	Wait      string // none, fixed, exponential or equal; empty is the decision's
	NoBudget  bool
	Bucket    Bucket
	Oblivious bool // retry what a layer below has given up
	Unchecked bool // accept what the standard's ranges exclude
}

// Bucket is a full bucket of Size retries to which every first attempt adds
// Deposit. A Size of 0 is no bucket.
type Bucket struct{ Deposit, Size float64 }

// Keeps reports whether something must outlive the attempts of p: the permits of
// a breaker, or what was put off.
func (p *Plan) Keeps() bool { return p.Breaker || p.Durable }
