package model

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// Caller is one process that calls one dependency: its Retryer, and the parts
// of it that the Retryer does not feed by itself.
type Caller struct {
	Retryer  *forbear.Retryer
	Budget   budget.Budget
	Adaptive *budget.Adaptive // nil without throttling
	outcomes outcomes         // nil when the budget does not count successes
}

// outcomes is what a budget implements that earns by good calls.
type outcomes interface {
	Succeeded(now time.Time, retries int, last budget.Cost)
}

// Caller makes one instance. It stands for so many processes, and each request
// that it counts stands for unit requests: what a budget gives to a process
// whatever its load is scaled by processes / unit. The exact engine has 1 and 1.
func (p *Plan) Caller(draw func() float64, processes, unit float64) (*Caller, error) {
	b := &Caller{Budget: p.budget(processes, unit)}
	opts := []forbear.Option{
		forbear.WithoutLog(), forbear.WithCallerDeadLetter(), forbear.WithRand(draw), forbear.WithBudget(b.Budget),
	}
	const dependency = "simulated"
	if p.Baseline.Unchecked {
		for _, rule := range []string{"R-1", "R-2", "R-3", "R-7", "INTG-STD-033"} {
			opts = append(opts, forbear.WithWaiver(forbear.Waiver{Rule: rule, Dependency: dependency, Reason: "simulation"}))
		}
	}
	var err error
	if b.Retryer, err = forbear.New(dependency, p.Given, opts...); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	b.outcomes, _ = b.Budget.(outcomes)
	if p.ThrottleK > 0 {
		b.Adaptive = budget.NewAdaptive(p.ThrottleK, cmp.Or(p.ThrottleWindow, 2*time.Minute))
	}
	return b, nil
}

// budget returns the budget of one caller, or the baseline in its place.
func (p *Plan) budget(processes, unit float64) budget.Budget {
	switch {
	case p.Baseline.NoBudget:
		return Unlimited{}
	case p.Baseline.Bucket.Size > 0:
		size := max(p.Baseline.Bucket.Size*processes/unit, 1)
		return &depositBucket{size: size, deposit: p.Baseline.Bucket.Deposit, tokens: size}
	case p.NewBudget != nil:
		return p.NewBudget()
	}
	bp := p.Policy.Budget
	bp.MinRetries = int(float64(bp.MinRetries) * processes / unit)
	return budget.NewRatio(bp)
}

// Succeeded records the good end of a call after so many retries, of which the
// last had the given cost.
func (b *Caller) Succeeded(now time.Time, retries int, last budget.Cost) {
	if b.outcomes != nil {
		b.outcomes.Succeeded(now, retries, last)
	}
}
