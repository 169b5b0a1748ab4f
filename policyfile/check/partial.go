package check

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/storm"
)

// partial warns of a breaker that turns a partial failure into an outage:
// one that the simulator finds self-inflicted in its scenario of that name.
func (r *run) partial(d *policyfile.Dependency) {
	if usual(d.Policy.Breaker) {
		return // it does not open there, whatever the retries
	}
	s := r.simulate(d.Policy)
	if s.Verdict != storm.SelfInflicted {
		return
	}
	field := "breaker.failure_rate"
	if d.Policy.Breaker.OnBudget == breaker.BudgetOpens {
		field = "breaker.on_budget"
	}
	r.about(d, field, "FC703", "simulated: while 30%% of the attempts on %s fail at random, that costs %s of the calls, and the breaker another %s",
		d.Name, whole(s.FaultCost), whole(s.BreakerCost))
}

// whole shows a share in whole percent: digits beyond that depend on the
// simulator's seed.
func whole(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// usual reports whether b opens as the default does, or never. Most policies
// do, and need no simulation, which takes far longer than all other checks
// together.
func usual(b breaker.Policy) bool {
	b = b.WithDefaults(0)
	d := breaker.Policy{}.WithDefaults(0)
	// These fields decide how long it stays open and what a slow call is,
	// not when failures open it.
	d.OpenFor, d.Probes, d.SlowCall, d.SlowRate = b.OpenFor, b.Probes, b.SlowCall, b.SlowRate
	return b.Disabled || b == d
}

// simulate runs the simulator's scenario "partial" with policy p, once for
// all dependencies with the same policy. A policy that cannot be run has
// faults that other findings report.
func (r *run) simulate(p forbear.Policy) storm.Summary {
	// Neither the owner nor the labels change the load, and without them
	// more policies are alike.
	p.Owner, p.Classify = "", nil
	p.Breaker.SlowCall = 0 // how long calls to the dependency take is not known here
	key, err := json.Marshal(p)
	if err != nil {
		return storm.Summary{}
	}
	if s, ok := r.simulated[string(key)]; ok {
		return s
	}
	// The scenario is one of storm's own.
	s, _ := storm.FindNamed("partial")
	s.Bin = storm.Duration(time.Second) // quicker than curves
	s.Fleets[0].Client = storm.Client{Policy: &p, Baseline: storm.Baseline{Unchecked: true}}
	var sum storm.Summary
	// A zero summary has no verdict, and so makes no finding.
	if result, err := storm.Run(context.Background(), s, storm.Options{}); err == nil {
		sum = result.Summary
	}
	if r.simulated == nil {
		r.simulated = map[string]storm.Summary{}
	}
	r.simulated[string(key)] = sum
	return sum
}
