package foreign

import (
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// celeryPolicy is a retry policy of kombu: waits that grow by a step.
type celeryPolicy struct {
	retries           int // negative for no end
	first, step, most time.Duration
}

// The defaults: of publishing a task (task_publish_retry_policy); of what such a policy
// leaves out, as kombu's Connection.ensure and ensure_connection have it; and of results
// in Redis (Backend.retry_policy). A policy replaces the first, and adds to the last.
var (
	celeryPublishing  = celeryPolicy{3, 0, 200 * time.Millisecond, time.Second}
	celeryEnsured     = celeryPolicy{-1, time.Second, time.Second, time.Second}
	celeryConnections = celeryPolicy{-1, 2 * time.Second, 2 * time.Second, 30 * time.Second}
	celeryKept        = celeryPolicy{20, 0, time.Second, time.Second}
)

// celeryRetried reads a policy into d, with the defaults for what it leaves out. It
// reports whether anything is retried.
func (r *reader) celeryRetried(d *policyfile.Dependency, n *tree.Node, p celeryPolicy) bool {
	r.more(d, n)
	if most := n.Get("max_retries"); most == nil && p.retries < 0 {
		r.limitless(n.At, d, "this policy has no max_retries: it is tried again without an end")
	} else {
		r.endless(d, most, max(p.retries, 0), d.At)
	}
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(d.At)
		return false
	}
	r.celeryTime(d, n.Get("interval_start"), &p.first)
	r.celeryTime(d, n.Get("interval_step"), &p.step)
	r.celeryTime(d, n.Get("interval_max"), &p.most)
	wait(d, func(retry int) time.Duration {
		return min(saturated(float64(p.first)+float64(retry)*float64(p.step), 1), p.most)
	})
	unbounded(d)
	r.cannot(d, "R-1", "", "Celery tries again to send to its broker and its backend after waits without jitter")
	r.cannot(d, "R-7", "budget", "%s", celeryBudget)
	return true
}

// celeryPublish judges how a caller sends a task that the broker does not take.
func (r *reader) celeryPublish(at policyfile.Position, m *celeryModule) {
	policies := m.settings["task_publish_retry_policy"]
	if m.only("task_publish_retry", "false") {
		r.quiet(m.settings["task_publish_retry"][0].Value.At)
		for _, p := range policies {
			r.unjudged(p.At, "", "this policy is not judged, since task_publish_retry is off: a condition may decide between the two")
		}
		return
	}
	if len(policies) == 0 {
		policies = []tree.Pair{{Value: &tree.Node{Value: "None", At: at}}}
	}
	for _, p := range policies {
		d := policyfile.Dependency{Name: "publishing of tasks", At: p.Value.At}
		defaults := celeryEnsured
		switch n := p.Value; {
		case n.Text() == "None":
			defaults = celeryPublishing
		case !n.Map():
			r.open(n.At, &d, "task_publish_retry_policy is %q: how often a task is published again is not known", n.Text())
			defaults = celeryPublishing
		}
		if r.celeryRetried(&d, p.Value, defaults) {
			r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
			r.cannot(&d, "R-6", "", "Celery may publish a task twice, when the broker's response was lost")
			r.add(d)
		}
	}
}

// celeryBroker judges how callers connect to the broker, and notes how messages come
// again and how workers connect.
func (r *reader) celeryBroker(m *celeryModule) {
	for _, p := range m.settings["broker_transport_options"] {
		if v := p.Value.Get("visibility_timeout"); v != nil {
			within := "visibility_timeout"
			if t, ok := seconds(v); ok {
				within = t.String()
			}
			r.unjudged(v.At, "", "a task that is not acknowledged within %s is run again, without a count, even while it runs or waits for its own retry", within)
		}
		if p.Value.Has("max_retries") {
			d := policyfile.Dependency{Name: "connections to the broker", At: p.Value.At}
			if r.celeryRetried(&d, p.Value, celeryConnections) {
				r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
				r.add(d)
			}
		}
	}
	for _, p := range m.settings["broker_connection_max_retries"] {
		if text := p.Value.Text(); text == "None" || text == "0" {
			r.unjudged(p.Value.At, "", "broker_connection_max_retries is %s: workers connect to the broker without an end, after waits without jitter", text)
		}
	}
}

// celeryRedis reports whether a backend is known to keep results in Redis.
func celeryRedis(backend *tree.Node) bool {
	scheme, _, ok := strings.Cut(backend.Text(), "://")
	return ok && (scheme == "redis" || scheme == "rediss" || scheme == "sentinel")
}

// celeryResults judges how a result is kept.
func (r *reader) celeryResults(m *celeryModule) {
	if m.only("task_ignore_result", "true") {
		return
	}
	r.celeryAlways(m)
	policies := 0
	for _, p := range m.settings["result_backend_transport_options"] {
		if policy := p.Value.Get("retry_policy"); policy != nil {
			policies++
			r.celeryKeeps(policy)
		} else if !p.Value.Map() || p.Value.Has("**") {
			policies++
			r.unjudged(p.Value.At, "", "result_backend_transport_options is not known as a whole: it may have a retry_policy")
		}
	}
	for _, p := range m.settings["result_backend"] {
		if policies == 0 && celeryRedis(p.Value) {
			r.celeryKeeps(&tree.Node{At: p.Value.At})
			return
		}
	}
}

// celeryKeeps judges the policy of results in Redis.
func (r *reader) celeryKeeps(policy *tree.Node) {
	d := work("results in Redis", "", policy.At)
	if policy.Text() != "" {
		r.open(policy.At, &d, "retry_policy is %q: how often a result is sent again is not known", policy.Text())
	}
	if !r.celeryRetried(&d, policy, celeryKept) {
		return
	}
	if t, ok := seconds(policy.Get("timeout")); ok && t > 0 {
		d.Policy.Total = t
		d.SetPlace("total", policy.Get("timeout").At)
	} else {
		r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
	}
	if policy.Has("max_retries") || d.AtLeast {
		r.add(d)
		return
	}
	r.unjudged(policy.At, d.Name, "nothing is said of how results in Redis are kept: Celery tries up to %d times again, unless result_backend_transport_options has a retry_policy", celeryKept.retries)
	r.add(d, "max_retries")
}

// celeryAlways judges what result_backend_always_retry adds: by default without an end,
// with full jitter.
func (r *reader) celeryAlways(m *celeryModule) {
	on := m.settings["result_backend_always_retry"]
	if len(on) == 0 || m.only("result_backend_always_retry", "false", "None") {
		return
	}
	at := on[len(on)-1].Value
	d := work("result backend", "", at.At)
	switch most := m.settings["result_backend_max_retries"]; {
	case len(most) > 0:
		r.endless(&d, most[len(most)-1].Value, 0, at.At)
	case at.True():
		r.limitless(at.At, &d, "no result_backend_max_retries bounds it: it is tried again without an end")
	default:
		r.open(at.At, &d, "result_backend_always_retry is %q: it may be tried again without an end", at.Text())
	}
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(at.At)
		return
	}
	d.Policy.Backoff = forbear.Backoff{Base: 10 * time.Millisecond, Cap: 10 * time.Second}
	for name, into := range map[string]*time.Duration{"base": &d.Policy.Backoff.Base, "max": &d.Policy.Backoff.Cap} {
		for _, p := range m.settings["result_backend_"+name+"_sleep_between_retries_ms"] {
			if ms, ok := seconds(p.Value); ok {
				*into = ms / 1000
			}
		}
	}
	unbounded(&d)
	r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
	r.cannot(&d, "R-7", "budget", "%s", celeryBudget)
	r.add(d)
}

// celeryLost judges tasks that go back to their queue when their worker is lost.
func (r *reader) celeryLost(m *celeryModule) {
	back := m.settings["task_reject_on_worker_lost"]
	if len(back) == 0 || m.only("task_reject_on_worker_lost", "false", "None") {
		return
	}
	const loop = "task_reject_on_worker_lost puts a task back without a count: one that ends its worker does so for ever, unless the broker bounds deliveries"
	at := back[len(back)-1].Value.At
	if len(m.settings["task_acks_late"]) == 0 || m.only("task_acks_late", "false", "None") {
		r.unjudged(at, "", "%s; so it is with the tasks whose own code acknowledges late", loop)
		return
	}
	d := work("tasks whose worker is lost", "", at)
	if m.only("task_reject_on_worker_lost", "true") && m.only("task_acks_late", "true") {
		r.limitless(at, &d, loop)
	} else {
		r.open(at, &d, "%s: whether it is on is not known", loop)
	}
	grow(&d, 0, 1, 0)
	unbounded(&d)
	r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
	r.again(&d, "Celery", "a task")
	r.add(d)
}
