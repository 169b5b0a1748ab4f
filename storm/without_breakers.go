package storm

import "math"

// What follows separates a fault from what the circuit breakers make of it.
//
// A run in which breakers refused something is made a second time without any:
// same arrivals, same fault, same waits and budgets. Of the calls that begin while the
// fault lasts, what fails in that second run is the dependency's; what ends well there
// and does not in the first is the breakers'. A run is self-inflicted when the breakers'
// share is the greater.
//
// So a refusal is not held against the policy when the dependency would have
// failed the call anyway: in a total outage the breakers cost nothing, however
// many calls they turn away, nor where they save a service from its retries.
// A retry that the budget refused is the dependency's, too: it failed the first
// attempt, and the budget is there in both runs. And a breaker that is still
// open when the fault is over is a matter of the recovery, not of the blame.

// suspicious is the least part of the calls that breakers must have refused for
// a second run to be worth its time.
const suspicious = 0.01

// blame finds out what the breakers of a run cost, and judges it anew. It takes a
// second run; where breakers refused next to nothing, there is nothing to find.
func (c *compiled) blame(r *Result, e Estimate, stop func() bool) error {
	if !c.m.Guarded() || r.Stopped || r.refusals < suspicious*r.Summary.Calls {
		return nil
	}
	bare, err := compile(c.s.withClients(func(c *Client) { c.Breaker = new(false) }))
	if err != nil {
		return err
	}
	without, err := bare.simulate(e, stop)
	if err != nil {
		return err
	}
	r.Stopped = without.Stopped
	r.Events += without.Events
	r.compareWith(without)
	return nil
}

// compareWith sets the costs and, where they say so, the verdict. What stays
// bad when the fault is over, or was so without it, is worse than what lasts as
// long as the fault.
func (r *Result) compareWith(without *Result) {
	calls, good, _ := r.during()
	all, rest, failed := without.during()
	if calls == 0 || all == 0 {
		return
	}
	s := &r.Summary
	s.FaultCost = failed / all
	s.BreakerCost = rest/all - good/calls
	noise := 3 * math.Sqrt(max(0, s.BreakerCost+s.FaultCost)/calls)
	if s.BreakerCost > s.FaultCost+noise && s.Verdict != Metastable && s.Verdict != Overloaded {
		s.Verdict = SelfInflicted
	}
}

// during returns the calls that began, and how they ended, from the beginning of the
// first fault to the end of the last; of the whole run when there is none.
func (r *Result) during() (calls, good, failed float64) {
	s, bin := &r.Series, r.Bin.Seconds()
	from, to := 0, min(len(s.Offered), len(r.begun))
	if r.Trigger != nil {
		from = min(int(r.Trigger[0].Seconds()/bin), to)
		to = min(to, int(math.Ceil(r.Trigger[1].Seconds()/bin-1e-9)))
	}
	for _, e := range r.begun[from:max(from, to)] {
		good += e.Good
		failed += e.Failed
	}
	return r.count(s.Offered, from, to), good, failed
}
