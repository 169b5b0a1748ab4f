package check

import (
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/policyfile"
)

// partialFailure is the share of attempts that fail in the partial failure which a
// breaker is held against. It is that of the simulator's scenario "partial".
const partialFailure = 0.3

// breaker judges the circuit breaker of a dependency: whether it is there, and whether it
// makes an outage of a partial failure that retries would have carried.
func (r *run) breaker(d *policyfile.Dependency) {
	p := d.Policy.WithDefaults()
	switch b := p.Breaker; {
	case b.Disabled:
		r.about(d, "breaker.disabled", breakerOff, "%s has no circuit breaker", d.Name)
	// The first retries alone ask for more than the budget has.
	case b.OnBudget == breaker.BudgetOpens && p.Retries() > 0 && partialFailure > p.Budget.MaxAmplification()-1:
		r.about(d, "breaker.on_budget", breakerSelfInflicted, "while %s of the attempts on %s fail, retries spend the budget, and the spent budget opens the breaker",
			percent(partialFailure), d.Name)
	case b.FailureRate < partialFailure:
		r.about(d, "breaker.failure_rate", breakerSelfInflicted, "while %s of the attempts on %s fail, the breaker opens: its failure_rate is %s",
			percent(partialFailure), d.Name, percent(b.FailureRate))
	}
}
