package policyfile

import (
	"github.com/forbear-go/forbear"
	"go.yaml.in/yaml/v4"
)

// breaker reads the section of that name.
func (r *policyReader) breaker(n *yaml.Node) {
	b := &r.policy.Breaker
	const useDefault = "leave it out for the default"
	known := fields{
		"disabled":     func(v *yaml.Node) { r.flag(v, "breaker.disabled", &b.Disabled) },
		"failure_rate": func(v *yaml.Node) { r.ratio(v, "breaker.failure_rate", &b.FailureRate) },
		"slow_rate":    func(v *yaml.Node) { r.ratio(v, "breaker.slow_rate", &b.SlowRate) },
		"slow_call":    func(v *yaml.Node) { r.duration(v, "breaker.slow_call", &b.SlowCall) },
		"window":       func(v *yaml.Node) { r.count(v, "breaker.window", useDefault, &b.Window) },
		"window_time":  func(v *yaml.Node) { r.duration(v, "breaker.window_time", &b.WindowTime) },
		"min_calls":    func(v *yaml.Node) { r.count(v, "breaker.min_calls", useDefault, &b.MinCalls) },
		"open_for":     func(v *yaml.Node) { r.duration(v, "breaker.open_for", &b.OpenFor) },
		"probes":       func(v *yaml.Node) { r.count(v, "breaker.probes", useDefault, &b.Probes) },
		"on_budget": func(v *yaml.Node) {
			if i, ok := r.choice(v, "breaker.on_budget", "signal", "immediate", "off"); ok {
				b.OnBudget = forbear.BudgetEffect(i)
			}
		},
	}
	for field, read := range known {
		known[field] = r.sets("breaker."+field, read)
	}
	r.strict(n, "breaker", known)
}
