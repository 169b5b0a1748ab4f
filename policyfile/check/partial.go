package check

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/storm"
)

// partialFailure is the share of attempts that fail while a breaker is put to the
// test, and partialRate how many calls a second a process makes then: both are those
// of the simulator's scenario "partial".
const (
	partialFailure = 0.3
	partialRate    = 50
)

// cost is what a partial failure costs, as shares of the calls.
type cost struct {
	fault, breaker float64
	selfInflicted  bool // the breaker's share is the greater, beyond chance
}

// partial warns of a breaker that turns a partial failure into an outage.
func (r *run) partial(d *policyfile.Dependency) {
	c := r.partials[d]
	if !c.selfInflicted {
		return
	}
	field := "breaker.failure_rate"
	if d.Policy.Breaker.OnBudget == breaker.BudgetOpens {
		field = "breaker.on_budget"
	}
	r.about(d, field, "FC703", "simulated: while 30%% of the attempts on %s fail at random, that costs %s of the calls, and the breaker another %s",
		d.Name, whole(c.fault), whole(c.breaker))
}

// whole shows a share in whole percent: digits beyond that depend on the
// simulation's seed.
func whole(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// usual reports whether b opens as the default does, or never. Most policies
// do, and need no simulation.
func usual(b breaker.Policy) bool {
	b = b.WithDefaults(0)
	d := breaker.Policy{}.WithDefaults(0)
	// These fields decide how long it stays open and what a slow call is,
	// not when failures open it.
	d.OpenFor, d.Probes, d.SlowCall, d.SlowRate = b.OpenFor, b.Probes, b.SlowCall, b.SlowRate
	return b.Disabled || b == d
}

// simulatePartial puts the breakers of all dependencies to the test that may open in it.
func (r *run) simulatePartial() {
	var suspects []*policyfile.Dependency
	for _, s := range r.sources {
		if s.File.Format != "" {
			continue // its breaker is not judged
		}
		for _, d := range s.File.All() {
			if !usual(d.Policy.Breaker) && doubtful(d.Policy.Breaker) {
				suspects = append(suspects, d)
			}
		}
	}
	groups := alike(suspects, inPartial)
	costs := make([]cost, len(groups))
	inParallel(len(groups), func(i int) { costs[i] = costOf(inPartial(groups[i][0].Policy)) })
	r.partials = map[*policyfile.Dependency]cost{}
	for i, group := range groups {
		for _, d := range group {
			r.partials[d] = costs[i]
		}
	}
}

// inPartial returns p without what makes no difference there: neither the owner nor the
// labels change the load, and how long calls take is not known here.
func inPartial(p forbear.Policy) forbear.Policy {
	p.Owner, p.Classify, p.WaitHeaders = "", nil, nil
	p.Breaker.SlowCall = 0
	return p
}

// costOf simulates the partial failure with policy p, and without its breaker when that
// refused more than a hundredth of the calls. A policy that cannot be run has faults
// that other findings report.
func costOf(p forbear.Policy) (c cost) {
	if p.Kind.Durable() || p.Kind == forbear.Batch || p.Health.Enabled() {
		return costOfWaiting(p)
	}
	var with outcome
	for i, l := range lucks() {
		if !l.mayOpen(p.Breaker) {
			continue // it costs nothing there
		}
		o, err := partialMinute(p, i, true)
		if err != nil {
			return c
		}
		with.add(o)
	}
	all := float64(len(lucks()) * partialRate * int(simTime/time.Second))
	if float64(with.refused) < all/100 {
		return c
	}
	without, err := partialMinute(p, 0, false)
	if err != nil {
		return c
	}
	c.fault = 1 - float64(without.good)/float64(without.calls)
	c.breaker = max(float64(with.calls)*(1-c.fault)-float64(with.good), 0) / all
	c.selfInflicted = c.breaker > c.fault+3*math.Sqrt((c.fault+c.breaker)/all)
	return c
}

// partialMinute simulates the partial failure in process i, with the breaker or
// without. A rule that p breaks is another finding's.
func partialMinute(p forbear.Policy, i int, guarded bool) (outcome, error) {
	m, err := newMinute("simulated", p, lucks()[i].attempts(), rand.New(rand.NewPCG(typical[i], 2)), anyway...)
	if err != nil {
		return outcome{}, err
	}
	if guarded {
		m.breaker = breaker.New(p.WithDefaults().Breaker, nil)
	}
	return m.run(partialRate), nil
}

// anyway lifts every rule that a policy may break and still be simulated.
var anyway = func() (opts []forbear.Option) {
	for _, rule := range []string{"R-1", "R-2", "R-3", "R-7", breaker.Rule} {
		opts = append(opts, forbear.WithWaiver(forbear.Waiver{Rule: rule, Dependency: "simulated", Reason: "simulation"}))
	}
	return opts
}()

// costOfWaiting is costOf for work that is put off instead of refused, and for policies
// with a health gate: the simulator has both.
func costOfWaiting(p forbear.Policy) (c cost) {
	// The scenario is one of storm's own.
	s, _ := storm.FindNamed("partial")
	s.Bin = storm.Duration(time.Second) // quicker than curves
	s.Fleets[0].Client = storm.Client{Policy: &p, Baseline: storm.Baseline{Unchecked: true}}
	result, err := storm.Run(context.Background(), s, storm.Options{})
	if err != nil {
		return c
	}
	sum := &result.Summary
	return cost{sum.FaultCost, sum.BreakerCost, sum.Verdict == storm.SelfInflicted}
}
