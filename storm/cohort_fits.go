package storm

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
)

// notes says where the cohort engine cannot be trusted in this run.
func (x *cohort) notes(r *Result) {
	if float64(x.knife)*x.dt > 1 {
		r.Notes = append(r.Notes, "knife edge: for a while the wait in the queue was about the client's timeout; "+
			"there the answer depends on the spread of single waits, which is approximated: check with the exact engine")
	}
	perStep := r.Summary.Calls / float64(x.steps)
	if perStep < 0.5 {
		r.Notes = append(r.Notes, fmt.Sprintf("few requests: %.2g per step, so that chance, which is left out here, matters: use the exact engine", perStep))
	}
	for _, g := range x.groups {
		p := g.plan
		if p.durable && r.Summary.BudgetRefused+r.Summary.BreakerRefused > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("fleet %q: durable work that is refused is put off and comes again, at a pace that successes earn; the cohort engine ends it: use the exact engine", g.fleet.Name))
		}
		if p.limit == 0 || p.given.Baseline.NoBudget {
			continue
		}
		each := g.fleet.Rate * p.policy.Budget.Window.Seconds() / float64(g.fleet.Instances)
		if g.fleet.Rate > 0 && each*p.policy.Budget.Ratio < 5 {
			r.Notes = append(r.Notes, fmt.Sprintf("fleet %q: a budget window holds %.3g requests of an instance, so that budgets are spent unevenly; the cohort engine spends them evenly", g.fleet.Name, each))
		}
	}
}

// cohortFits reports whether the cohort engine can run the scenario, or why not.
func cohortFits(m *model) (bool, string) {
	v := &m.s.Services[0]
	switch {
	case m.layered() || len(m.s.Services) > 1:
		return false, "it has one service, and this scenario has layers"
	case v.PerConcurrent > 0:
		return false, "service times depend on single requests (per_concurrent)"
	}
	for i := range m.edges {
		p := m.edges[i].plan
		switch {
		case p.policy.Backoff.Jitter == forbear.JitterDecorrelated && p.given.Baseline.Wait == "":
			return false, "decorrelated jitter depends on each call's last wait"
		case p.given.Throttle.K > 0:
			return false, "adaptive throttling drops first attempts by chance"
		case p.given.NewBudget != nil:
			return false, "the budget is the caller's own and cannot be scaled"
		case len(p.policy.Backoff.Schedule) > 0:
			return false, "the waits follow a schedule of hours"
		case p.rtt > p.timeout/4:
			return false, "the round trip is about as long as the timeout"
		}
		if v.Capacity > 0 && float64(v.Concurrency)/v.Capacity*1e9 > float64(p.timeout)/4 {
			return false, "a service takes about as long as the timeout"
		}
		if v.Capacity == 0 && int64(v.Time) > p.timeout/4 {
			return false, "a service takes about as long as the timeout"
		}
	}
	return true, ""
}

func estimateCohort(m *model) Estimate {
	lanes := 0
	for i := range m.edges {
		lanes += m.edges[i].plan.limit + 1
	}
	steps := m.s.Duration.Seconds() / stepOf(m).Seconds()
	return Estimate{
		Engine: Cohort,
		Events: steps,
		Memory: steps*(float64(lanes)*16+16) + 32<<20,
		Time:   time.Duration(steps * float64(300+lanes*400)),
	}
}

func (m *model) runCohort(stop func() bool) (*Result, error) {
	if ok, why := cohortFits(m); !ok {
		return nil, at("engine", "the cohort engine cannot run this scenario: %s", why)
	}
	x, err := newCohort(m)
	if err != nil {
		return nil, err
	}
	done := x.run(stop)
	queues.Put(x.q)
	res := x.rec.result(Cohort)
	res.Step, res.Events, res.Stopped = Duration(x.dt*1e9), int64(x.t), !done
	x.notes(res)
	return res, nil
}
