package foreign

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// argoKinds are the resources that hold templates of Argo Workflows.
var argoKinds = []string{"Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow"}

// claimsArgo knows the resources of Argo Workflows by their group, and the defaults of all
// workflows by where they stand.
func claimsArgo(n *tree.Node) bool {
	if resource(n, "argoproj.io", argoKinds...) {
		return n.Get("spec").Map()
	}
	// The controller's ConfigMap has them in a text, as a whole or under their key.
	spec := n.Get("spec")
	return !n.Has("apiVersion") && (spec.Get("retryStrategy").Map() || spec.Fold("templateDefaults", "retryStrategy").Map())
}

// ownArgo returns what is read of a resource: its strategies. The resources inside of it
// are looked at by themselves.
func ownArgo(n *tree.Node) (own []*tree.Node) {
	n.Walk(func(m *tree.Node) bool {
		if m != n && m.Has("apiVersion") && m.Has("kind") {
			return false
		}
		if v := m.Get("retryStrategy"); v.Map() {
			own = append(own, v)
		}
		return true
	})
	return own
}

// argo reads workflows.
func (r *reader) argo() {
	for _, part := range r.parts {
		n := part.Root
		spec := n.Get("spec")
		switch n.Get("kind").Text() {
		case "CronWorkflow":
			r.argoWorkflow(resourceName(n), n, spec.Get("workflowSpec"))
		case "":
			r.argoWorkflow("all workflows", n, spec)
		default:
			r.argoWorkflow(resourceName(n), n, spec)
		}
	}
}

// strategy is a retryStrategy with what is around it.
type strategy struct {
	*tree.Node
	// whole is the deadline of the workflow, or nil.
	whole *tree.Node
	// inner says that the retried steps retry by themselves.
	inner bool
	sent  request
}

// argoWorkflow reads the templates of a workflow. Those without a strategy of their
// own have that of the workflow, which is one unit for all of them.
func (r *reader) argoWorkflow(name string, n, spec *tree.Node) {
	whole := spec.Get("activeDeadlineSeconds")
	var all *tree.Node
	for _, of := range []*tree.Node{spec.Get("templateDefaults"), spec} {
		if s := of.Get("retryStrategy"); s.Map() && all == nil {
			all = s
		}
	}
	found, steps := false, false
	retried := map[string]bool{}
	templates := argoTemplates(spec)
	for _, t := range templates {
		if t.Get("retryStrategy").Map() || all != nil {
			retried[t.Get("name").Text()] = true
		}
		steps = steps || all != nil && len(argoCalls(t)) > 0
	}
	for _, t := range templates {
		if s := t.Get("retryStrategy"); s.Map() {
			called := argoCalls(t)
			inner := slices.ContainsFunc(called, func(name string) bool { return retried[name] })
			r.argoStrategy(name+"/"+t.Get("name").Text(), n, strategy{s, whole, inner, argoRequest(t)})
			found = true
		}
	}
	if all != nil {
		r.argoStrategy(name+"/*", n, strategy{all, whole, steps, request{}})
	} else if !found {
		r.quiet(n.At)
	}
}

// argoTemplates lists the templates of a workflow, and those inside of steps.
func argoTemplates(spec *tree.Node) (all []*tree.Node) {
	for _, t := range spec.Get("templates").List() {
		all = append(all, t)
		t.Walk(func(n *tree.Node) bool {
			if inline := n.Get("inline"); inline.Map() {
				all = append(all, inline)
			}
			return true
		})
	}
	return all
}

// argoRequest reads the request of a template. Its method is GET where none is written.
func argoRequest(template *tree.Node) (sent request) {
	http := template.Get("http")
	if !http.Map() {
		return sent
	}
	if sent.method = http.Get("method"); sent.method == nil {
		sent.method = &tree.Node{Value: "GET", At: http.At}
	}
	for _, h := range http.Get("headers").List() {
		sent.keyed = sent.keyed || isKey(h.Get("name").Text())
	}
	return sent
}

// argoCalls lists the templates that a template of steps or of a graph runs.
func argoCalls(t *tree.Node) (names []string) {
	for _, key := range []string{"steps", "dag"} {
		t.Get(key).Walk(func(n *tree.Node) bool {
			if name := n.Get("template").Text(); name != "" {
				names = append(names, name)
			}
			return true
		})
	}
	return names
}

// argoStrategy judges one retryStrategy (Fields, "RetryStrategy" and "Backoff"). Its
// limit counts retries; without one there is no end, and without a backoff no wait.
func (r *reader) argoStrategy(name string, n *tree.Node, s strategy) {
	d := work(name, n.Fold("metadata", "namespace").Text(), s.At)
	limit := s.Get("limit")
	if limit == nil || limit.Text() == "" {
		r.limitless(s.At, &d, "its retryStrategy has no limit, so it is retried until it succeeds")
	} else if m, ok := count(limit); ok {
		retries(&d, m, limit.At)
	} else {
		r.open(limit.At, &d, "limit %q is not a number: how often %s is retried is unknown", limit.Text(), name)
	}
	if d.Policy.Disabled {
		r.quiet(s.At)
		return
	}
	if s.inner {
		r.open(s.At, &d, "%s retries steps that also retry: their attempts multiply", name)
	}
	judged := r.argoTimes(&d, s)
	unbounded(&d)
	r.cannot(&d, "R-1", "", "Argo Workflows has no jitter: steps that failed together run again together")
	if when := s.Get("expression"); when.Text() != "" {
		r.unjudged(when.At, name, "%s is retried where its expression is true: whether that excludes operations that must not run twice (R-6) is not judged", name)
		r.unbudgeted(&d, "Argo Workflows")
	} else {
		r.repeated(&d, "Argo Workflows", "a step", s.sent)
	}
	r.batch(d, judged...)
}

// argoTimes reads the waits and what bounds them all, and returns what is judged of it
// here. maxDuration counts from the first attempt, and the deadline of the workflow
// from its start.
func (r *reader) argoTimes(d *policyfile.Dependency, s strategy) (judged []string) {
	back := s.Get("backoff")
	first, known := argoTime(back.Get("duration"))
	factor, _ := back.Get("factor").Number()
	switch {
	case !back.Map():
		r.refuse(s.At, "R-1", d, "backoff.base", "its retryStrategy has no backoff, so it runs again at once")
	case known && factor <= 1 && fixed(back.Get("factor")) && d.Policy.Retries() > 1:
		r.refuse(back.At, "R-1", d, "backoff.base", "it waits %v before every retry: set a factor, so that waits grow", first)
	}
	if known {
		var most time.Duration
		r.time(d, "backoff.cap", back.Get("cap"), argoTime, &most)
		d.SetPlace("backoff.base", back.Get("duration").At)
		wait(d, grows(first, max(factor, 1), most))
	} else if v := given(back.Get("duration")); v != nil {
		r.unjudged(v.At, d.Name, "%s: %q is not a duration, so its waits are unknown", d.Name, v.Text())
	}
	var whole time.Duration
	r.time(d, "total", back.Get("maxDuration"), argoTime, &d.Policy.Total)
	if d.Policy.Total > 0 {
		return nil
	}
	if r.time(d, "total", s.whole, seconds, &whole); whole > 0 {
		// Whatever maxDuration is, that bounds it.
		d.Policy.Total = whole
		d.Lacks = slices.DeleteFunc(d.Lacks, func(field string) bool { return field == "total.missing" })
		return []string{"total"} // of all of the workflow, for which R-3 has no figure
	}
	r.refuse(s.At, "R-3", d, "total.missing", "nothing bounds its retries in time: set maxDuration, or a deadline of the workflow")
	return nil
}

// fixed reports whether a factor is one that can be read, or is left out, which is
// as good as 1.
func fixed(factor *tree.Node) bool {
	_, ok := factor.Number()
	return ok || factor.Text() == ""
}

// argoSpan matches durations of days beside those of Go.
var argoSpan = regexp.MustCompile(`^(\d+)d$`)

// argoTime reads a duration: a number of seconds, or one with a unit.
func argoTime(n *tree.Node) (time.Duration, bool) {
	if t, ok := seconds(n); ok {
		return t, true
	}
	if m := argoSpan.FindStringSubmatch(n.Text()); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		return saturated(v, day), true
	}
	return n.Span()
}
