package foreign

import (
	"time"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// sensorSteps is how often a sensor tries by default, the first attempt included,
// where a trigger has a retryStrategy that does not say it.
const sensorSteps = 5

// argoSensor reads the triggers of a sensor of Argo Events. One without a
// retryStrategy is tried once.
func (r *reader) argoSensor(n *tree.Node) {
	for _, trigger := range n.Get("spec").Get("triggers").List() {
		if trigger.Get("retryStrategy").Map() {
			r.argoTrigger(n, trigger)
		} else {
			r.quiet(trigger.At)
		}
	}
}

// argoTrigger judges one trigger: steps count the first attempt, and what is drawn for
// jitter comes on top of the wait.
func (r *reader) argoTrigger(n, trigger *tree.Node) {
	s := trigger.Get("retryStrategy")
	d := work(resourceName(n)+"/"+trigger.Path("template", "name").Text(), n.Path("metadata", "namespace").Text(), s.At)
	steps, place := sensorSteps, s.At
	if v := s.Get("steps"); v != nil {
		if m, ok := count(v); ok && m > 0 {
			steps, place = m, v.At
		} else if !ok {
			r.open(v.At, &d, "steps %q is no number: how often %s is tried is not known", v.Text(), d.Name)
		}
	}
	retries(&d, steps-1, place)
	if d.Policy.Disabled {
		r.quiet(s.At)
		return
	}
	first, factor, jitter := time.Second, 1.0, 1.0
	r.time(&d, "backoff.base", s.Get("duration"), sensorTime, &first)
	if v, ok := s.Get("factor").Number(); ok {
		factor = v
	}
	if v, ok := s.Get("jitter").Number(); ok && v >= 0 {
		jitter = v
	}
	if factor <= 1 && d.Policy.Retries() > 1 {
		r.refuse(s.At, "R-1", &d, "backoff.base", "it waits for %v before every retry, and jitter: no factor makes the waits grow", first)
	}
	wait(&d, grows(saturated(float64(first)*(1+jitter), 1), max(factor, 1), 0))
	unbounded(&d)
	// Without at-least-once the event is gone by the time its trigger fails.
	if dead := trigger.Get("dlqTrigger"); !dead.Map() || !trigger.Get("atLeastOnce").True() {
		r.refuse(s.At, "R-8", &d, "dead_letter", "an event whose trigger fails to the end is dropped: set dlqTrigger, and atLeastOnce: true, without which it is not called")
	}
	r.cannot(&d, "R-1", "", "Argo Events draws its jitter on top of the wait: that is not full jitter")
	r.cannot(&d, "R-3", "total.missing", "Argo Events bounds how often a trigger is tried, and not for how long")
	r.again(&d, "Argo Events", "a trigger")
	r.add(d)
}

// sensorTime reads a duration: a number of nanoseconds, or one with a unit. The
// default is a second.
func sensorTime(n *tree.Node) (time.Duration, bool) {
	if ns, ok := n.Number(); ok && ns >= 0 {
		return saturated(ns, 1), true
	}
	return n.Span()
}
