package model

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/duration"
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
	// Method is that of the requests. NeedsKey says that they are not idempotent, and Key
	// is the idempotency key that they carry, if any.
	Method   string
	NeedsKey bool
	Key      string
	// Durable says that a call that is refused for now is postponed. With a baseline in
	// the place of the budget a refusal is final, as it is in the original.
	Durable bool
	// ThrottleK and ThrottleWindow are those of adaptive throttling; K of 0 is
	// off.
	ThrottleK      float64
	ThrottleWindow time.Duration
	// MaxConcurrent bounds the calls that are under way at once, each from its first attempt
	// to its end; 0 is no bound. Where attempts take the places instead, as those of durable
	// kinds do, the Retryer's own bulkhead counts.
	MaxConcurrent int
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
// a breaker, places in a bulkhead, or postponed calls.
func (p *Plan) Keeps() bool {
	return p.Breaker || p.Durable || p.Policy.MaxConcurrent > 0 && p.MaxConcurrent == 0
}

// What follows is not forbear's: the baselines. They exist to be compared with, and
// nothing outside the simulator can have them.

// Wait returns the wait that the baseline puts in the place of d's, before retry
// number n (the first is 1).
func (p *Plan) Wait(d *forbear.Decision, n int, draw func() float64) time.Duration {
	ceiling := duration.Ceiling(p.Policy.Backoff.Base, p.Policy.Backoff.Cap, n-1)
	switch p.Baseline.Wait {
	case "":
		return d.Wait
	case "none":
		ceiling = 0
	case "fixed":
		ceiling = p.Policy.Backoff.Base
	case "equal":
		ceiling = ceiling/2 + time.Duration(draw()*float64(ceiling/2))
	}
	return ceiling
}

// Unlimited is the budget of clients that have none.
type Unlimited struct{}

// Request implements [budget.Budget].
func (Unlimited) Request(time.Time) {}

// Spend allows every retry.
func (Unlimited) Spend(time.Time, budget.Cost) bool { return true }

// Refund implements [budget.Budget].
func (Unlimited) Refund(time.Time, budget.Cost) {}

// Level returns a budget of which nothing is used.
func (Unlimited) Level(time.Time) budget.Level { return budget.Level{Allowed: 1} }

// depositBucket is a token bucket that every request fills: Brooker's, and that
// of the AWS Builders' Library.
type depositBucket struct{ size, deposit, tokens float64 }

func (b *depositBucket) Request(time.Time) { b.tokens = min(b.size, b.tokens+b.deposit) }

func (b *depositBucket) Spend(time.Time, budget.Cost) bool {
	// Ten deposits of 0.1 are one token, whatever the rounding.
	if b.tokens < 1-1e-9 {
		return false
	}
	b.tokens = max(b.tokens-1, 0)
	return true
}

func (b *depositBucket) Refund(time.Time, budget.Cost) { b.tokens = min(b.size, b.tokens+1) }

func (b *depositBucket) Level(time.Time) budget.Level {
	return budget.Level{Used: b.size - b.tokens, Allowed: b.size}
}
