package foreign

import (
	"time"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// Defaults of Argo CD, whose automated syncs are retried where nothing is written.
const (
	syncRetries = 5
	syncFirst   = 5 * time.Second
	syncLongest = 3 * time.Minute
	syncFactor  = 2.0
)

// argoApplicationSet reads the template of the applications, and those of generators, which
// come before it.
func (r *reader) argoApplicationSet(n, spec *tree.Node) {
	r.argoApplication(n, spec.Path("template", "spec"))
	spec.Get("generators").Walk(func(m *tree.Node) bool {
		if of := m.Path("template", "spec"); of.Get("syncPolicy") != nil {
			r.argoApplication(n, of)
		}
		return true
	})
	if patch := spec.Get("templatePatch"); mentionsRetries([]byte(patch.Text())) {
		r.unjudged(patch.At, resourceName(n), "what templatePatch makes of the retries of each application is not judged")
	}
}

// argoApplication reads the syncs of an Application of Argo CD, or of those that an
// ApplicationSet makes (Application Specification, "syncPolicy"). spec is that of the
// application.
func (r *reader) argoApplication(n, spec *tree.Node) {
	policy := spec.Get("syncPolicy")
	s, auto := given(policy.Get("retry")), policy.Get("automated")
	if !s.Map() && (!auto.Map() || auto.Has("enabled") && auto.Get("enabled").Text() == "false") {
		r.quiet(n.At) // a person starts each sync, and sees what comes of it
		return
	}
	d := work(resourceName(n)+"/sync", n.Path("metadata", "namespace").Text(), placed(s, placed(auto, n.At)))
	limit := s.Get("limit")
	switch m, ok := limit.Number(); {
	case !s.Map():
		retries(&d, syncRetries, d.At)
	case ok && m < 0:
		r.limitless(limit.At, &d, "limit %s has no end: a sync is retried until it succeeds", limit.Text())
	default:
		count, at := r.number(&d, limit, 0, s.At)
		retries(&d, count, at)
	}
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(d.At)
		return
	}
	back := s.Get("backoff")
	first, longest, factor := syncFirst, syncLongest, syncFactor
	r.time(&d, "backoff.base", back.Get("duration"), argoTime, &first)
	r.time(&d, "backoff.cap", back.Get("maxDuration"), argoTime, &longest)
	if v, ok := back.Get("factor").Number(); ok {
		factor = v
	}
	if factor <= 1 && d.Policy.Retries() > 1 {
		r.refuse(back.At, "R-1", &d, "backoff.base", "it waits for %v before every retry: no factor makes the waits grow", first)
	}
	wait(&d, grows(first, max(factor, 1), longest))
	unbounded(&d)
	r.cannot(&d, "R-1", "", "Argo CD has no jitter: applications that failed together are synced again together")
	r.cannot(&d, "R-3", "total.missing", "Argo CD bounds how often a sync is retried, and not for how long")
	r.again(&d, "Argo CD", "a sync")
	r.batch(d)
}
