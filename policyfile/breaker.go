package policyfile

import (
	"reflect"

	"github.com/forbear-go/forbear/breaker"
)

// breakerSchema is the schema of the section. Its descriptions are written
// out, since the types alone cannot say what a duration or a share does
// here.
func breakerSchema() object {
	return described(properties(reflect.TypeFor[breaker.Policy]()), map[string]string{
		"failure_rate": "opens above this share of failed calls, such as 50% or 0.5, when it is certain to 99.9 %",
		"slow_rate":    "opens above this share of slow calls, such as 80% or 0.8, when it is certain to 99.9 %",
		"slow_call":    "what a slow call takes, such as 500ms; the per-attempt timeout unless said otherwise",
		"window":       "one of the two windows, both of which are looked at: the last so many calls; 100 unless said otherwise",
		"window_time":  "the other window: the calls of the last so long, such as 60s, which is the default",
		"min_calls":    "calls in a window before its rate counts; 20 unless said otherwise",
		"open_for":     "the longest time that it stays open, such as 30s: it starts with 5s, and doubles with each probing that fails after the first",
		"probes":       "calls that must all succeed before it closes; 5 unless said otherwise",
		"on_budget":    "what a spent retry budget does: signal shows it, immediate opens the breaker, off does not even show it",
	})
}
