package cohort

import (
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/storm/internal/model"
)

// notes says where the cohort engine cannot be trusted in this run.
func (x *engine) notes() {
	r := x.rec
	if float64(x.knife)*x.dt > 1 {
		r.Notes = append(r.Notes, "knife edge: for a while the wait in the queue was about the client's timeout; "+
			"there the answer depends on the spread of single waits, which is approximated: check with the exact engine")
	}
	calls := 0.0
	for i := range r.Bins {
		calls += r.Bins[i].Calls
	}
	perStep := calls / float64(x.steps)
	if perStep < 0.5 {
		r.Notes = append(r.Notes, fmt.Sprintf("few requests: %.2g per step, so that chance, which is left out here, matters: use the exact engine", perStep))
	}
	for _, g := range x.groups {
		p := g.plan
		if p.Durable && r.Refused[forbear.ReasonBudget]+r.Refused[forbear.ReasonBreakerOpen] > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("fleet %q: durable work that is refused is put off and comes again, at a pace that successes earn; the cohort engine ends it: use the exact engine", g.fleet.Name))
		}
		if p.Limit == 0 || p.Baseline.NoBudget {
			continue
		}
		each := g.fleet.Rate * p.Policy.Budget.Window.Seconds() / float64(g.instances)
		if g.fleet.Rate > 0 && each*p.Policy.Budget.Ratio < 5 {
			r.Notes = append(r.Notes, fmt.Sprintf("fleet %q: a budget window holds %.3g requests of an instance, so that budgets are spent unevenly; the cohort engine spends them evenly", g.fleet.Name, each))
		}
	}
}

// Unfit returns why the cohort engine cannot run m, or "" when it can.
func Unfit(m *model.Model) string {
	v := &m.Services[0]
	switch {
	case m.Layered() || len(m.Services) > 1:
		return "it has one service, and this scenario has layers"
	case v.PerConcurrent > 0:
		return "service times depend on single requests (per_concurrent)"
	}
	for i := range m.Edges {
		p := m.Edges[i].Plan
		switch {
		case p.Policy.Backoff.Jitter == forbear.JitterDecorrelated && p.Baseline.Wait == "":
			return "decorrelated jitter depends on each call's last wait"
		case p.ThrottleK > 0:
			return "adaptive throttling drops first attempts by chance"
		case p.NewBudget != nil:
			return "the budget is the caller's own and cannot be scaled"
		case len(p.Policy.Backoff.Schedule) > 0:
			return "the waits follow a schedule of hours"
		case p.RTT > p.Timeout/4:
			return "the round trip is about as long as the timeout"
		}
		if v.Capacity > 0 && float64(v.Concurrency)/v.Capacity*1e9 > float64(p.Timeout)/4 {
			return "a service takes about as long as the timeout"
		}
		if v.Capacity == 0 && int64(v.Time) > p.Timeout/4 {
			return "a service takes about as long as the timeout"
		}
	}
	return ""
}

// Cost is what a run of m needs: it grows with the steps and the attempts of a
// call, and with nothing else.
func Cost(m *model.Model) model.Cost {
	lanes := 0
	for i := range m.Edges {
		lanes += m.Edges[i].Plan.Limit + 1
	}
	steps := m.Duration.Seconds() / stepOf(m).Seconds()
	return model.Cost{
		Events: steps,
		Memory: steps*(float64(lanes)*16+16) + 32<<20,
		Time:   time.Duration(steps * float64(300+lanes*400)),
	}
}
