package policyfile

import (
	"maps"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/waitform"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// fields returns the readers of the policy fields, together with those of
// the caller. Each records its place first, so that a later fault finds it.
func (r *policyReader) fields(more fields) fields {
	known := r.values("", &r.policy)
	maps.Copy(known, fields{
		"backoff": func(v *yaml.Node) {
			r.section(v, "backoff", &r.policy.Backoff, fields{"jitter": r.jitter, "schedule": r.schedule})
		},
		"budget":  r.budget,
		"breaker": func(v *yaml.Node) { r.section(v, "breaker", &r.policy.Breaker, nil) },
		// In Go a negative bound is none, which a file says in a word.
		"body_idle": func(v *yaml.Node) {
			if strict.Resolve(v).Value == "off" {
				r.policy.BodyIdle = -1
				return
			}
			r.durationOr(v, "body_idle", "off, or ", &r.policy.BodyIdle)
		},
		"health":       func(v *yaml.Node) { r.section(v, "health", &r.policy.Health, nil) },
		"classify":     r.classify,
		"wait_headers": r.waitHeaders,
	})
	r.placed("", known)
	known["extends"], known["profile"] = skip, skip // which have been read
	maps.Copy(known, more)
	return known
}

// jitter knows the words that R-1 forbids, so that a file which uses one
// gets the rule and not just a list of other words.
func (r *policyReader) jitter(v *yaml.Node) {
	switch v.Value {
	case "equal", "fixed", "none", "constant":
		r.refuse(r.At(v), "R-1", r.owner, "backoff.jitter", "backoff.jitter %s is forbidden: want full or decorrelated", v.Value)
		return
	}
	if i, ok := r.Choice(v, "backoff.jitter", "full", "decorrelated"); ok {
		r.policy.Backoff.Jitter = [...]forbear.Jitter{forbear.JitterFull, forbear.JitterDecorrelated}[i]
	}
}

// maxSteps bounds a schedule. It is more than any kind has attempts.
const maxSteps = 32

// schedule reads the steps of a fixed schedule. A list with a faulty step is
// dropped whole: without it every later step would move up.
func (r *policyReader) schedule(v *yaml.Node) {
	items := r.Items(v, "backoff.schedule")
	if len(items) > maxSteps {
		r.Fault(v, "backoff.schedule has %d steps: want at most %d", len(items), maxSteps)
		return
	}
	steps := make([]time.Duration, 0, len(items))
	for _, item := range items {
		if step, ok := r.span(item, "a step of backoff.schedule", ""); ok {
			steps = append(steps, step)
		}
	}
	if len(steps) == len(items) {
		r.policy.Backoff.Schedule = steps
	}
}

// budget reads the section of that name.
func (r *policyReader) budget(n *yaml.Node) {
	if v := strict.Resolve(n); v.Kind == yaml.ScalarNode && (v.Value == "none" || v.Value == "off" || v.Value == "false") {
		r.refuse(r.At(v), "R-7", r.owner, "budget", "budget %s: every dependency needs a retry budget, such as {ratio: 20%%, window: 30s}", v.Value)
		return
	}
	b := &r.policy.Budget
	r.section(n, "budget", b, fields{
		"max_multiplier": func(v *yaml.Node) { r.number(v, "budget.max_multiplier", &b.MaxMultiplier) },
	})
}

// waitHeaders reads the headers that tell a wait, each with its form. What their names
// may be is checked by the policy itself.
func (r *policyReader) waitHeaders(n *yaml.Node) {
	for key, value := range r.Entries(n, "wait_headers") {
		what := "wait_headers." + key.Value
		r.sets(what, func(v *yaml.Node) {
			i, ok := r.Choice(v, what, waitform.Names...)
			if !ok {
				return
			}
			if r.policy.WaitHeaders == nil {
				r.policy.WaitHeaders = map[string]string{}
			}
			r.policy.WaitHeaders[key.Value] = waitform.Names[i]
		})(value)
	}
}
