package foreign

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of a task (Tasks, "Retrying"), and of publishing one
// (task_publish_retry_policy). What such a policy leaves out means what it means to
// kombu's Connection.ensure: a second between tries, and no end.
const (
	celeryRetries    = 3
	celeryDelay      = 180 * time.Second
	celeryBackoffMax = 600 * time.Second
	celeryPublish    = 3
	celeryInterval   = time.Second
)

// What nothing in Celery bounds.
const (
	celeryEndless = "Celery bounds how often something is tried, and not for how long"
	celeryBudget  = "Celery has no retry budget: whatever fails is tried again"
)

// celerySettings are names by which the settings of Celery are known, as version 4 has
// them, and celeryTask those of a task that are about its retries.
var (
	celerySettings = []string{
		"broker_url", "result_backend", "task_serializer", "task_annotations", "task_routes", "task_publish_retry", "task_publish_retry_policy",
		"task_acks_late", "task_reject_on_worker_lost", "broker_use_ssl", "redis_backend_use_ssl", "result_backend_always_retry", "broker_transport_options", "beat_schedule", "celerybeat_schedule", "imports",
	}
	celeryTask = []string{"max_retries", "default_retry_delay", "retry_backoff", "autoretry_for", "retry_kwargs"}
	// celeryNone are taken for settings by some, and Celery knows none of them: these are
	// attributes of a task.
	celeryNone = []string{"task_max_retries", "task_default_max_retries", "task_default_retry_delay", "task_retry_backoff", "task_retry_jitter", "task_autoretry_for"}
)

// celeryName is the name of a setting since version 4. Before that, and in Django's
// settings, it is written in capitals, and most begin with CELERY_.
func celeryName(key string) string {
	name := strings.TrimPrefix(strings.ToLower(key), "celery_")
	switch name {
	case "annotations", "acks_late", "routes":
		return "task_" + name
	}
	return name
}

// speaksCelery knows the settings of Celery in Python, and its tasks by what their
// decorators say of retries.
func speaksCelery(name string, data []byte) (bool, *policyfile.Fault) {
	called := strings.Contains(strings.ToLower(name), "celery")
	if strings.ToLower(filepath.Ext(name)) != ".py" || !called && !bytes.Contains(bytes.ToLower(data), []byte("celery")) {
		return false, nil
	}
	known := 0
	// The module that Celery looks for by itself.
	if strings.EqualFold(filepath.Base(name), "celeryconfig.py") {
		known++
	}
	for _, p := range tree.Python(name, data).Pairs {
		if celeryDecorator(p) {
			return true, nil
		}
		// In Django's settings the prefix tells that they are Celery's.
		if slices.Contains(celerySettings, celeryName(p.Key)) {
			known++
			if called || strings.HasPrefix(p.Key, "CELERY_") {
				known++
			}
		}
	}
	return known > 1, nil
}

// celeryDecorator reports whether a pair is a decorator that makes a function a task,
// and says something of its retries.
func celeryDecorator(p tree.Pair) bool {
	target, decorates := strings.CutPrefix(p.Key, "@")
	return decorates && strings.HasSuffix(target, "task") && slices.ContainsFunc(p.Value.Fields(), func(q tree.Pair) bool { return slices.Contains(celeryTask, q.Key) })
}

// celery reads what is retried when a task fails, when it cannot be published, when its
// result cannot be kept, and when its worker is lost.
func (r *reader) celery() {
	for i := range r.parts {
		part := &r.parts[i]
		root := tree.Python(part.Name, part.Text)
		if part.pin != nil {
			root.Pin(*part.pin)
		}
		set := map[string]*tree.Node{}
		settings := false
		for _, p := range root.Pairs {
			name := celeryName(p.Key)
			set[name] = p.Value
			settings = settings || slices.Contains(celerySettings, name)
			switch {
			case celeryDecorator(p):
				r.celeryTask("task "+p.Value.Get("def").Text(), p.Value)
			case slices.Contains(celeryNone, name):
				r.unjudged(p.At, "", "%s is no setting of Celery, and changes nothing: tasks have such attributes, and task_annotations may set them", p.Key)
			case name == "task_annotations":
				r.celeryAnnotations(p.Value)
			case name == "broker_use_ssl", name == "redis_backend_use_ssl":
				r.celeryTLS(p)
			}
		}
		if settings {
			r.celeryPublish(root.At, set)
			r.celeryResults(set)
			r.celeryLost(set)
		}
	}
}

// celeryAnnotations reads the attributes of tasks: by their names, or in a list of maps.
func (r *reader) celeryAnnotations(n *tree.Node) {
	if !n.Map() && len(n.List()) == 0 {
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
		case slices.ContainsFunc(p.Value.Pairs, func(q tree.Pair) bool { return slices.Contains(celeryTask, q.Key) }):
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

// celeryTask judges the attributes of one task. What is not there may be in its code,
// which also says when it is retried.
func (r *reader) celeryTask(name string, n *tree.Node) {
	d := work(name, "", n.At)
	most, delay := n.Get("max_retries"), n.Get("default_retry_delay")
	if forced := n.Get("retry_kwargs"); forced != nil {
		if v := forced.Get("max_retries"); v != nil {
			most = v
		}
		if v := forced.Get("countdown"); v != nil {
			delay = v
		}
	}
	r.endless(&d, most, celeryRetries, n.At)
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(n.At)
		return
	}
	r.celeryWaits(&d, n, delay)
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
// retry_backoff says that they grow, which brings full jitter along.
func (r *reader) celeryWaits(d *policyfile.Dependency, n, delay *tree.Node) {
	back, pause := n.Get("retry_backoff"), celeryDelay
	if t, ok := seconds(delay); ok {
		pause = t
	}
	factor, grow := seconds(back)
	if back.True() {
		factor, grow = time.Second, true
	}
	switch {
	case grow && factor > 0:
		most := celeryBackoffMax
		if t, ok := seconds(n.Get("retry_backoff_max")); ok {
			most = t
		}
		d.SetPlace("backoff.base", back.At)
		d.Policy.Total = wait(d, grows(factor, 2, most))
		d.Policy.Backoff = forbear.Backoff{Base: factor, Cap: max(most, factor)}
		if jitter := n.Get("retry_jitter"); jitter.Text() == "false" {
			r.refuse(jitter.At, "R-1", d, "backoff.jitter", "retry_jitter is off: what failed together is run again together")
		}
	default:
		d.Policy.Total = wait(d, grows(pause, 1, 0))
		at := cmp.Or(delay, n.Get("autoretry_for"))
		switch {
		case back != nil && back.Text() != "false" && factor == 0:
			r.unjudged(back.At, d.Name, "%s: retry_backoff is %q, and how it waits is not known", d.Name, back.Text())
		case at != nil && d.Policy.Retries() > 1:
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

// celeryPublish judges how a caller sends a task that the broker does not take.
func (r *reader) celeryPublish(at policyfile.Position, set map[string]*tree.Node) {
	if v := set["task_publish_retry"]; v.Text() == "false" {
		r.quiet(v.At)
		return
	}
	policy := set["task_publish_retry_policy"]
	d := policyfile.Dependency{Name: "publishing of tasks", At: placed(policy, at)}
	first, step, longest := time.Duration(0), 200*time.Millisecond, time.Second
	switch {
	case policy == nil || policy.Text() == "None":
		retries(&d, celeryPublish, d.At)
	case !policy.Map():
		r.open(policy.At, &d, "task_publish_retry_policy is %q: how often a task is published again is not known", policy.Text())
	default:
		most := policy.Get("max_retries")
		if most == nil {
			r.limitless(policy.At, &d, "this policy has no max_retries: a task that the broker does not take is published without an end")
		} else {
			r.endless(&d, most, 0, policy.At)
		}
		first, step, longest = celeryInterval, celeryInterval, celeryInterval
		for key, into := range map[string]*time.Duration{"interval_start": &first, "interval_step": &step, "interval_max": &longest} {
			if t, ok := seconds(policy.Get(key)); ok {
				*into = t
			}
		}
	}
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(d.At)
		return
	}
	wait(&d, func(retry int) time.Duration {
		return min(saturated(float64(first)+float64(retry)*float64(step), 1), longest)
	})
	unbounded(&d)
	r.cannot(&d, "R-1", "", "Celery publishes a task again after waits without jitter")
	r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
	r.cannot(&d, "R-6", "", "Celery may publish a task twice, when the broker's answer was lost")
	r.cannot(&d, "R-7", "budget", "%s", celeryBudget)
	r.add(d)
}

// celeryResults judges how a result is kept: always tried again, and by default for ever,
// with full jitter.
func (r *reader) celeryResults(set map[string]*tree.Node) {
	on := set["result_backend_always_retry"]
	if on == nil || on.Text() == "false" {
		return
	}
	d := work("result backend", "", on.At)
	if most := set["result_backend_max_retries"]; most != nil {
		r.endless(&d, most, 0, most.At)
	} else {
		r.limitless(on.At, &d, "no result_backend_max_retries bounds it: it is tried again without an end")
	}
	if d.Policy.Disabled && !d.AtLeast {
		r.quiet(on.At)
		return
	}
	d.Policy.Backoff = forbear.Backoff{Base: 10 * time.Millisecond, Cap: 10 * time.Second}
	unbounded(&d)
	r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
	r.cannot(&d, "R-7", "budget", "%s", celeryBudget)
	r.add(d)
}

// celeryLost judges tasks that go back to their queue when their worker is lost.
func (r *reader) celeryLost(set map[string]*tree.Node) {
	late, back := set["task_acks_late"], set["task_reject_on_worker_lost"]
	if !late.True() || back == nil || back.Text() == "false" {
		return
	}
	d := work("tasks whose worker is lost", "", back.At)
	r.limitless(back.At, &d, "task_reject_on_worker_lost puts a task back without a count: one that ends its worker does so for ever, unless the broker bounds deliveries")
	grow(&d, 0, 1, 0)
	unbounded(&d)
	r.cannot(&d, "R-3", "total.missing", "%s", celeryEndless)
	r.again(&d, "Celery", "a task")
	r.add(d)
}

// celeryTLS looks for a broker or a backend whose certificate is not verified.
func (r *reader) celeryTLS(p tree.Pair) {
	for _, key := range []string{"cert_reqs", "ssl_cert_reqs"} {
		if v := p.Value.Get(key); v != nil && (strings.HasSuffix(v.Text(), "CERT_NONE") || strings.EqualFold(v.Text(), "none")) {
			d := policyfile.Dependency{Name: celeryName(p.Key), At: v.At}
			r.refuse(v.At, "R-9", &d, "tls.verify", "%s accepts any certificate", key)
		}
	}
}
