package policyfile

import (
	"reflect"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/breaker"
)

// breaker reads the section of that name. What the values may be is checked
// by the policy itself, not here.
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
				b.OnBudget = breaker.BudgetEffect(i)
			}
		},
	}
	for field, read := range known {
		known[field] = r.sets("breaker."+field, read)
	}
	r.strict(n, "breaker", known)
}

// breakerSchema is the schema of the section. Its descriptions are written
// out, since the types alone cannot say what a duration or a share does
// here.
func breakerSchema() object {
	p := properties(reflect.TypeFor[breaker.Policy]())
	for field, text := range map[string]string{
		"failure_rate": "opens above this share of failed calls, such as 50% or 0.5, when it is certain to 99.9 %",
		"slow_rate":    "opens above this share of slow calls, such as 80% or 0.8, when it is certain to 99.9 %",
		"slow_call":    "what a slow call takes, such as 500ms; the per-attempt timeout unless said otherwise",
		"window":       "one of the two windows, both of which are looked at: the last so many calls; 100 unless said otherwise",
		"window_time":  "the other window: the calls of the last so long, such as 60s, which is the default",
		"min_calls":    "calls in a window before its rate counts; 20 unless said otherwise",
		"open_for":     "the longest time that it stays open, such as 30s: it starts with 5s, and doubles with each probing that fails",
		"probes":       "calls that must all succeed before it closes; 5 unless said otherwise",
		"on_budget":    "what a spent retry budget does: signal shows it, immediate opens the breaker, off does not even show it",
	} {
		p[field].(object)["description"] = text
	}
	return closed(p)
}
