package foreign

import (
	"cmp"
	"slices"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of a task (Tasks, "Retrying").
const (
	celeryRetries    = 3
	celeryDelay      = 180 * time.Second
	celeryBackoffMax = 600 * time.Second
)

// celeryAnnotations reads the attributes of tasks: by their names, or in a list of maps.
func (r *reader) celeryAnnotations(n *tree.Node) {
	if !n.Map() && len(n.List()) == 0 && n.Text() != "None" {
		r.unjudged(n.At, "", "task_annotations is %q: what it says of retries is not known", n.Text())
	}
	for _, item := range n.List() {
		r.celeryAnnotations(item)
	}
	for _, p := range n.Fields() {
		name := "task " + p.Key
		if p.Key == "*" {
			name = "every task"
		}
		switch {
		case p.Key == "**" || !p.Value.Map():
			r.unjudged(p.At, "", "what task_annotations has here is not known")
		case slices.ContainsFunc(p.Value.Pairs, func(q tree.Pair) bool { return q.Key == "**" || slices.Contains(celeryTask, q.Key) }):
			r.celeryTask(name, p.Value)
		default:
			r.quiet(p.At)
		}
	}
}

// endless sets the number of retries, of which None has no end.
func (r *reader) endless(d *policyfile.Dependency, n *tree.Node, absent int, at policyfile.Position) {
	if n.Text() == "None" {
		r.limitless(n.At, d, "max_retries is None: it is tried again without an end")
		return
	}
	count, at := r.number(d, n, absent, at)
	retries(d, count, at)
}

// more notes what is unpacked into the attributes of a unit.
func (r *reader) more(d *policyfile.Dependency, n *tree.Node) {
	if v := n.Get("**"); v != nil {
		r.open(v.At, d, "%s: what is added here is not known, and may say how often it is retried", d.Name)
	}
}

// celeryTask judges the attributes of one task. What is not there may be in its code,
// which also says when it is retried.
func (r *reader) celeryTask(name string, n *tree.Node) {
	d := work(name, "", n.At)
	most, delay, known := n.Get("max_retries"), n.Get("default_retry_delay"), true
	if forced := n.Get("retry_kwargs"); forced != nil {
		most, delay = cmp.Or(forced.Get("max_retries"), most), cmp.Or(forced.Get("countdown"), delay)
		if r.more(&d, forced); !forced.Map() {
			r.open(forced.At, &d, "%s: retry_kwargs is %q, and may say how often it is retried", name, forced.Text())
		}
		known = forced.Map() && !forced.Has("**")
	}
	r.more(&d, n)
	r.endless(&d, most, celeryRetries, n.At)
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(n.At)
		return
	}
	r.celeryWaits(&d, n, delay, known && !n.Has("**"))
	for _, e := range n.Get("autoretry_for").List() {
		if short := e.Text(); (short == "Exception" || short == "BaseException") && !n.Has("dont_autoretry_for") {
			r.unjudged(e.At, d.Name, "%s retries exceptions of every kind: those that come again, too (R-4)", d.Name)
		}
	}
	unbounded(&d)
	r.cannot(&d, "R-8", "", "Celery has no dead letters: a task that failed to the end is a line in the result backend, if there is one")
	r.again(&d, "Celery", "a task")
	r.add(d)
}

// celeryWaits reads the waits before a task is run again: always the same, unless
// retry_backoff says that they grow, which brings full jitter along. known is false where
// more than n may say how long they are.
func (r *reader) celeryWaits(d *policyfile.Dependency, n, delay *tree.Node, known bool) {
	back, jitter := n.Get("retry_backoff"), n.Get("retry_jitter")
	pause, most, factor := celeryDelay, celeryBackoffMax, time.Duration(0)
	known = r.celeryTime(d, delay, &pause) && known
	switch text := back.Text(); {
	case back.True():
		factor = time.Second
	case back != nil && text != "false" && text != "None":
		known = r.celeryTime(d, back, &factor) && known
	}
	if factor > 0 {
		r.celeryTime(d, n.Get("retry_backoff_max"), &most)
		d.SetPlace("backoff.base", back.At)
		d.Policy.Total = wait(d, grows(factor, 2, most))
		d.Policy.Backoff = forbear.Backoff{Base: factor, Cap: max(most, factor)}
		switch {
		case jitter.Text() == "false":
			r.refuse(jitter.At, "R-1", d, "backoff.jitter", "retry_jitter is off: what failed together is run again together")
		case jitter != nil && !jitter.True():
			r.celeryTime(d, jitter, new(time.Duration))
		}
	} else {
		d.Policy.Total = wait(d, grows(pause, 1, 0))
		if at := cmp.Or(delay, n.Get("autoretry_for")); at != nil && known && d.Policy.Retries() > 1 {
			r.refuse(at.At, "R-1", d, "backoff.base", "it waits for %v before every retry: set retry_backoff, which has jitter", pause)
		}
	}
	if place, written := d.Place("max_retries"); written {
		d.SetPlace("total", place)
	}
	if d.Policy.Total <= day {
		d.Policy.Total = 0
		r.cannot(d, "R-3", "total.missing", "%s", celeryEndless)
	}
}

// celeryTime reads a number of seconds that may be left out, and reports whether it is
// known.
func (r *reader) celeryTime(d *policyfile.Dependency, n *tree.Node, into *time.Duration) bool {
	if n == nil {
		return true
	}
	t, ok := seconds(n)
	if !ok {
		r.unjudged(n.At, d.Name, "%s: %q decides how it waits, and is not known", d.Name, n.Text())
		return false
	}
	*into = t
	return true
}
