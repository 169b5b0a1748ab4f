package foreign

import (
	"cmp"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of Kubernetes (Jobs, "Pod backoff failure policy"): failed pods are
// replaced after 10 s, 20 s, 40 s and so on, and after 6 min at most. Containers that
// restart in their pod wait for 5 min at most.
const (
	jobRetries      = 6
	jobBase         = 10 * time.Second
	jobCap          = 6 * time.Minute
	jobContainerCap = 5 * time.Minute
)

// claimsJob knows Jobs and CronJobs by their group.
func claimsJob(n *tree.Node) bool {
	return resource(n, "batch", "Job", "CronJob") && n.Get("spec").Map()
}

// ownJob returns what a Job says of its retries.
func ownJob(n *tree.Node) []*tree.Node {
	return under((*tree.Node).Get, "backoffLimit", "backoffLimitPerIndex", "podFailurePolicy")(jobSpec(n))
}

// jobSpec is the specification of a Job, or of those that a CronJob starts.
func jobSpec(n *tree.Node) *tree.Node {
	if n.Get("kind").Text() == "CronJob" {
		return n.Fold("spec", "jobTemplate", "spec")
	}
	return n.Get("spec")
}

// k8sJob reads Jobs, by themselves or as a CronJob starts them.
func (r *reader) k8sJob() {
	for _, part := range r.parts {
		if spec := jobSpec(part.Root); spec != nil {
			r.job(part.Root, spec)
		}
	}
}

// resourceName names a resource of Kubernetes with its kind. What the cluster names
// itself goes by the beginning of that name.
func resourceName(n *tree.Node) string {
	return n.Get("kind").Text() + " " + cmp.Or(n.Fold("metadata", "name").Text(), n.Fold("metadata", "generateName").Text())
}

// job reads one Job. A file that leaves backoffLimit out gets a note and no finding:
// Kubernetes retries more often than R-2 allows by itself, but how long a job runs,
// and what it may repeat, is in its program.
func (r *reader) job(n, spec *tree.Node) {
	d := work(resourceName(n), n.Fold("metadata", "namespace").Text(), n.At)
	limit, written := r.jobLimit(&d, spec)
	read := !d.AtLeast
	inPod := spec.Fold("template", "spec", "restartPolicy").Text() == "OnFailure"
	if inPod && d.Policy.Disabled && !d.AtLeast {
		// The controller counts restarts, and sees the first one when it has begun.
		r.unjudged(limit, d.Name, "%s fails only after a container was restarted, so it may run twice: for no retry set restartPolicy: Never", d.Name)
		retries(&d, 1, limit)
	}
	if d.Policy.Disabled {
		r.quiet(n.At)
		return
	}
	deadline := given(spec.Get("activeDeadlineSeconds"))
	again, what, longest := "replaces its pod", "a pod", jobCap
	if inPod {
		again, what, longest = "restarts its containers", "a container", jobContainerCap
	}
	wait(&d, grows(jobBase, 2, longest))
	if t, ok := seconds(deadline); ok && t > 0 {
		d.SetPlace("total", deadline.At)
		d.Policy.Total = t
	} else {
		d.Lacks = append(d.Lacks, "total.missing")
	}
	unbounded(&d)
	switch {
	case !written:
		r.unjudged(limit, d.Name, "%s has no backoffLimit: Kubernetes %s up to %d times; batch items may be retried up to 5 times%s",
			d.Name, again, jobRetries, endless(deadline))
	case deadline == nil:
		r.unjudged(limit, d.Name, "%s has no activeDeadlineSeconds, so nothing bounds its attempts in time", d.Name)
	}
	r.jobPolicy(&d, spec)
	r.cannot(&d, "R-1", "", "Kubernetes waits 10s, 20s and so on, up to %vm, before it %s, without jitter", longest.Minutes(), again)
	r.again(&d, "Kubernetes", what)
	// R-3 has no figure for a batch as a whole: any deadline will do.
	if written && read {
		r.batch(d, "total")
	} else {
		r.add(d, "total", "max_retries")
	}
}

func endless(deadline *tree.Node) string {
	if deadline != nil {
		return ""
	}
	return ", and no activeDeadlineSeconds bounds them in time"
}

// jobLimit reads how often a pod is replaced. An index of an indexed Job is what R-2
// calls an item, and its own limit leaves that of the Job without a default.
func (r *reader) jobLimit(d *policyfile.Dependency, spec *tree.Node) (at policyfile.Position, written bool) {
	at, n := spec.At, jobRetries
	whole, each := spec.Get("backoffLimit"), spec.Get("backoffLimitPerIndex")
	for _, v := range []*tree.Node{whole, each} {
		if v.Text() == "" {
			continue
		}
		m, ok := count(v)
		switch {
		case !ok:
			r.open(v.At, d, "%q is not a number: how often %s retries is unknown", v.Text(), d.Name)
			at, written = v.At, true
		case !written || m < n:
			at, n, written = v.At, m, true
		}
	}
	retries(d, n, at)
	return at, written
}

// jobPolicy looks for failures that count for nothing. What an eviction ended is no
// failure of the work, and to ignore it is what the documentation advises.
func (r *reader) jobPolicy(d *policyfile.Dependency, spec *tree.Node) {
	for _, rule := range spec.Fold("podFailurePolicy", "rules").List() {
		if rule.Get("action").Text() == "Ignore" && rule.Has("onExitCodes") {
			r.limitless(rule.At, d, "failures with these exit codes are ignored: they do not count towards backoffLimit, so nothing bounds their retries")
		}
	}
}
