package policyfile

import (
	"maps"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
)

// fields returns the readers of the policy fields, together with those of
// the caller. Each records its place first, so that a later fault finds it.
func (r *policyReader) fields(more fields) fields {
	p := &r.policy
	known := fields{
		"kind":         r.kind,
		"owner":        func(v *yaml.Node) { r.text(v, "owner", &p.Owner) },
		"disabled":     func(v *yaml.Node) { r.flag(v, "disabled", &p.Disabled) },
		"strict":       func(v *yaml.Node) { r.flag(v, "strict", &p.Strict) },
		"max_retries":  func(v *yaml.Node) { r.count(v, "max_retries", useDisabled, &p.MaxRetries) },
		"max_attempts": func(v *yaml.Node) { r.count(v, "max_attempts", useDisabled, &p.MaxAttempts) },
		"total":        func(v *yaml.Node) { r.duration(v, "total", &p.Total) },
		"per_attempt":  func(v *yaml.Node) { r.duration(v, "per_attempt", &p.PerAttempt) },
		"connect":      func(v *yaml.Node) { r.duration(v, "connect", &p.Connect) },
		"min_attempt":  func(v *yaml.Node) { r.duration(v, "min_attempt", &p.MinAttempt) },
		"backoff":      r.backoff,
		"budget":       r.budget,
		"breaker":      r.breaker,
		"health":       func(v *yaml.Node) { r.health(v, nil) },
		"max_concurrent": func(v *yaml.Node) {
			r.count(v, "max_concurrent", "leave it out to set no bound", &p.MaxConcurrent)
		},
		"idempotency":  r.keys,
		"retry_unsent": func(v *yaml.Node) { r.flag(v, "retry_unsent", &p.RetryUnsent) },
		"classify":     r.classify,
	}
	for field, read := range known {
		known[field] = r.sets(field, read)
	}
	maps.Copy(known, more)
	return known
}

// useDisabled is the hint where 0 stands for a count: zero means the default
// in a Policy, and its author meant none.
const useDisabled = "to allow no retry at all, write disabled: true"

// kind reads the kind; the order of the words is that of forbear.Kind.
func (r *policyReader) kind(v *yaml.Node) {
	if i, ok := r.choice(v, "kind", "sync", "grpc", "event", "webhook", "batch"); ok {
		r.policy.Kind = forbear.Kind(i)
	}
}

// keys reads who brings the idempotency key of a write.
func (r *policyReader) keys(v *yaml.Node) {
	if i, ok := r.choice(v, "idempotency", "reuse", "generate", "refuse"); ok {
		r.policy.Keys = [...]forbear.KeyMode{forbear.KeyReuse, forbear.KeyGenerate, forbear.KeyRefuse}[i]
	}
}

// backoff reads the section of that name.
func (r *policyReader) backoff(n *yaml.Node) {
	b := &r.policy.Backoff
	r.strict(n, "backoff", fields{
		"base":     r.sets("backoff.base", func(v *yaml.Node) { r.duration(v, "backoff.base", &b.Base) }),
		"cap":      r.sets("backoff.cap", func(v *yaml.Node) { r.duration(v, "backoff.cap", &b.Cap) }),
		"jitter":   r.sets("backoff.jitter", r.jitter),
		"schedule": r.sets("backoff.schedule", r.schedule),
	})
}

// jitter knows the words that R-1 forbids, so that a file which uses one
// gets the rule and not just a list of other words.
func (r *policyReader) jitter(v *yaml.Node) {
	switch v.Value {
	case "equal", "fixed", "none", "constant":
		r.refuse(r.at(v), "R-1", r.owner, "backoff.jitter", "backoff.jitter %s is forbidden: want full or decorrelated", v.Value)
		return
	}
	if i, ok := r.choice(v, "backoff.jitter", "full", "decorrelated"); ok {
		r.policy.Backoff.Jitter = [...]forbear.Jitter{forbear.JitterFull, forbear.JitterDecorrelated}[i]
	}
}

// maxSteps bounds a schedule. It is more than any kind has attempts.
const maxSteps = 32

// schedule reads the steps of a fixed schedule. A list with a faulty step is
// dropped whole: without it every later step would move up.
func (r *policyReader) schedule(v *yaml.Node) {
	items := r.items(v, "backoff.schedule")
	if len(items) > maxSteps {
		r.fault(v, "", "backoff.schedule has %d steps: want at most %d", len(items), maxSteps)
		return
	}
	steps := make([]time.Duration, 0, len(items))
	for _, item := range items {
		if step, ok := r.span(item, "a step of backoff.schedule"); ok {
			steps = append(steps, step)
		}
	}
	if len(steps) == len(items) {
		r.policy.Backoff.Schedule = steps
	}
}

// budget reads the section of that name.
func (r *policyReader) budget(n *yaml.Node) {
	if v := resolve(n); v.Kind == yaml.ScalarNode && (v.Value == "none" || v.Value == "off" || v.Value == "false") {
		r.refuse(r.at(v), "R-7", r.owner, "budget", "budget %s: every dependency needs a retry budget", v.Value)
		return
	}
	b := &r.policy.Budget
	r.strict(n, "budget", fields{
		"ratio":  r.sets("budget.ratio", func(v *yaml.Node) { r.ratio(v, "budget.ratio", &b.Ratio) }),
		"window": r.sets("budget.window", func(v *yaml.Node) { r.duration(v, "budget.window", &b.Window) }),
		"min_retries": r.sets("budget.min_retries", func(v *yaml.Node) {
			r.count(v, "budget.min_retries", "for no floor, write strict: true", &b.MinRetries)
		}),
		"max_multiplier": r.sets("budget.max_multiplier", func(v *yaml.Node) {
			r.number(v, "budget.max_multiplier", &b.MaxMultiplier)
		}),
		"round_up": r.sets("budget.round_up", func(v *yaml.Node) { r.flag(v, "budget.round_up", &b.RoundUp) }),
		"of": r.sets("budget.of", func(v *yaml.Node) {
			if i, ok := r.choice(v, "budget.of", "initial", "total"); ok {
				b.Of = budget.RatioOf(i)
			}
		}),
	})
}
