package foreign

import (
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// springRetry is a section of settings for Spring's RetryTemplate. The keys are those of
// Spring Boot, unless others are named.
type springRetry struct {
	name    string
	kind    forbear.Kind
	at      *tree.Node
	s       scope
	profile string

	count, first, factor, most string // keys
	attempts                   int    // the first included
	initial, max               time.Duration
	multiplier                 float64
}

// springTemplate reads such a section, and reports whether it retries anything. One
// without growth has the same wait each time; none of them has jitter, unless random
// says so.
func (r *reader) springTemplate(t springRetry, random bool) bool {
	d := policyfile.Dependency{Name: t.name, Route: t.profile, At: t.at.At}
	d.Policy.Kind = t.kind
	// Spring Boot 4 counts retries, under a name of its own.
	count, def, lower := t.s.get("max-retries"), t.attempts-1, 0
	if count == nil {
		count, def, lower = t.s.get(t.count), t.attempts, 1
	}
	if !r.springRetries(&d, count, def, lower) {
		r.quiet(d.At)
		return false
	}
	factor := r.springFactor(&d, t.s.get(t.factor), t.multiplier)
	first, most := r.springTime(&d, "backoff.base", t.s.get(t.first), t.initial), r.springTime(&d, "backoff.cap", t.s.get(t.most), t.max)
	if factor <= 1 {
		factor = 1
	}
	if most > 0 {
		first = min(first, most)
	}
	grow(&d, first, factor, most)
	switch {
	case factor == 1 && d.Policy.Retries() > 1:
		at, _ := d.Place("backoff.base")
		r.refuse(at, "R-1", &d, "backoff.base", "waits %v before every retry: set a multiplier", each(d.Policy.Backoff.Base))
	case !random:
		r.cannot(&d, "R-1", "", "Spring's waits have no jitter by configuration: it takes code")
	default:
		r.cannot(&d, "R-1", "", "Spring's random waits lie between the exponential value and a multiple of it: that is not full jitter")
	}
	if t.kind == forbear.Sync {
		r.springLacks(&d)
	} else {
		r.springMessage(&d)
	}
	unbounded(&d)
	r.add(d)
	return true
}

// boot is a section with the keys and defaults of Spring Boot.
func (doc springDoc) boot(name string, kind forbear.Kind, keys ...string) (t springRetry, ok bool) {
	t = springRetry{
		name: name, kind: kind, at: doc.scope[0].Fold(keys...), s: doc.scope.at(keys...), profile: doc.profile,
		count: "max-attempts", first: "initial-interval", factor: "multiplier", most: "max-interval",
		attempts: 3, initial: time.Second, max: 10 * time.Second, multiplier: 1,
	}
	return t, t.at.Map()
}

// springTemplates reads the retries of clients whose callers wait.
func (r *reader) springTemplates(doc springDoc) {
	if t, ok := doc.boot("rabbitmq template", forbear.Sync, "spring", "rabbitmq", "template", "retry"); ok && springTrue(t.s.get("enabled"), false) {
		r.springTemplate(t, false)
	}
}

// springLacks records what none of Spring's clients has.
func (r *reader) springLacks(d *policyfile.Dependency) {
	r.cannot(d, "R-3", "total.missing", "Spring has no bound here for a call and its retries together")
	r.cannot(d, "R-5", "", "Spring does not read Retry-After: a server that asks for a pause is asked again too early")
	r.cannot(d, "R-7", "budget", "Spring has no retry budget")
}
