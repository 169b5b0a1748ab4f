package foreign

import (
	"bytes"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// What nothing in Celery bounds.
const (
	celeryEndless = "Celery bounds how often something is tried, and not for how long"
	celeryBudget  = "Celery has no retry budget: whatever fails is tried again"
)

// celerySettings are names by which the settings of Celery are known, as version 4 has
// them, and celeryTask those of a task that are about its retries.
var (
	celerySettings = strings.Fields(`
		task_annotations task_routes task_publish_retry task_publish_retry_policy task_acks_late task_reject_on_worker_lost
		task_acks_on_failure_or_timeout task_serializer task_always_eager task_ignore_result task_track_started task_time_limit
		task_soft_time_limit task_default_queue task_queues task_create_missing_queues
		broker_url broker_use_ssl broker_transport_options broker_connection_retry broker_connection_retry_on_startup
		broker_connection_max_retries broker_pool_limit broker_heartbeat
		result_backend result_serializer result_expires result_backend_always_retry result_backend_max_retries
		result_backend_transport_options result_backend_base_sleep_between_retries_ms
		result_backend_max_sleep_between_retries_ms redis_backend_use_ssl
		worker_concurrency worker_prefetch_multiplier worker_max_tasks_per_child beat_schedule celerybeat_schedule imports`)
	celeryTask = []string{"max_retries", "default_retry_delay", "retry_backoff", "autoretry_for", "retry_kwargs"}
	// celeryNone are taken for settings by some, and Celery knows none of them: these are
	// attributes of a task.
	celeryNone = []string{"task_max_retries", "task_default_max_retries", "task_default_retry_delay", "task_retry_backoff", "task_retry_jitter", "task_autoretry_for"}
)

// celeryName is the name of a setting since version 4. Before that, and in Django's
// settings, it is written in capitals, and most begin with CELERY_.
func celeryName(key string) string {
	bare, prefixed := strings.CutPrefix(key, "CELERY_")
	name := strings.ToLower(bare)
	if !prefixed {
		return name
	}
	switch name {
	case "annotations", "acks_late", "always_eager", "ignore_result", "routes", "publish_retry", "publish_retry_policy":
		return "task_" + name
	}
	return name
}

// celeryModule is what a module of Python says to Celery.
type celeryModule struct {
	// settings are by their names. A condition may decide which of several values holds,
	// so that each of them counts.
	settings map[string][]tree.Pair
	tasks    []tree.Pair // their decorators
	classes  []tree.Pair // what says when the tasks of a class are retried
	none     []tree.Pair // see celeryNone
	open     []tree.Pair // what is handed over, and cannot be seen
	// known counts the settings, and those twice whose prefix tells that they are Celery's.
	known int
}

// celeryModuleOf finds the settings in a module, and in dicts of them.
func celeryModuleOf(root *tree.Node) *celeryModule {
	m := &celeryModule{settings: map[string][]tree.Pair{}}
	m.gather(root)
	return m
}

func (m *celeryModule) gather(n *tree.Node) {
	for _, p := range n.Pairs {
		name := celeryName(p.Key)
		switch {
		case celeryDecorator(p):
			m.tasks = append(m.tasks, p)
		case strings.HasPrefix(p.Key, "@"):
		case p.Key == "**":
			m.open = append(m.open, p)
		case p.Key == "autoretry_for", p.Key == "retry_kwargs", p.Key == "retry_backoff":
			m.classes = append(m.classes, p)
		case slices.Contains(celeryNone, name):
			m.none = append(m.none, p)
		case p.Key == "backend" && celeryRedis(p.Value): // the constructor's
			m.settings["result_backend"] = append(m.settings["result_backend"], p)
		case slices.Contains(celerySettings, name):
			m.settings[name] = append(m.settings[name], p)
			m.known++
			// In Django's settings the prefix tells that they are Celery's.
			if strings.HasPrefix(p.Key, "CELERY_") {
				m.known++
			}
		case slices.ContainsFunc(p.Value.Fields(), func(q tree.Pair) bool { return slices.Contains(celerySettings, celeryName(q.Key)) }):
			if strings.Contains(strings.ToLower(p.Key), "celery") {
				m.known++
			}
			m.gather(p.Value)
		}
	}
}

// only reports whether a setting is written, and one of these whenever it is.
func (m *celeryModule) only(name string, values ...string) bool {
	all := m.settings[name]
	return len(all) > 0 && !slices.ContainsFunc(all, func(p tree.Pair) bool { return !slices.Contains(values, p.Value.Text()) })
}

// speaksCelery knows the settings of Celery in Python, and its tasks by what their
// decorators and classes say of retries.
func speaksCelery(name string, data []byte) (bool, *policyfile.Fault) {
	called := strings.Contains(strings.ToLower(name), "celery")
	if !Program(name) || !called && !bytes.Contains(bytes.ToLower(data), []byte("celery")) {
		return false, nil
	}
	m := celeryModuleOf(tree.Python(name, data))
	return len(m.tasks)+len(m.classes) > 0 || m.known > 1 || called && m.known > 0, nil
}

// celeryDecorator reports whether a pair is a decorator that makes a function a task,
// and says something of its retries, or may do so.
func celeryDecorator(p tree.Pair) bool {
	target, decorates := strings.CutPrefix(p.Key, "@")
	return decorates && strings.HasSuffix(target, "task") && slices.ContainsFunc(p.Value.Fields(), func(q tree.Pair) bool {
		return q.Key == "**" || slices.Contains(celeryTask, q.Key)
	})
}

// celery reads what is retried when a task fails, when it cannot be published, when its
// result cannot be kept, and when its worker is lost.
func (r *reader) celery() {
	for i := range r.parts {
		part := &r.parts[i]
		root := tree.Python(part.Name, part.Text)
		root.Move(part.in.at)
		m := celeryModuleOf(root)
		for _, p := range m.settings["task_annotations"] {
			r.celeryAnnotations(p.Value)
		}
		for _, p := range m.tasks {
			r.celeryTask("task "+p.Value.Get("def").Text(), p.Value)
		}
		if m.known > 0 {
			r.celeryPublish(root.At, m)
			r.celeryBroker(m)
			r.celeryResults(m)
			r.celeryLost(m)
		}
		r.celeryUnread(m)
	}
}

// celeryUnread notes what may say something of retries, and is not judged.
func (r *reader) celeryUnread(m *celeryModule) {
	for _, p := range m.none {
		r.unjudged(p.At, "", "%s is no setting of Celery, and changes nothing: tasks have such attributes, and task_annotations may set them", p.Key)
	}
	if len(m.classes) > 0 {
		r.unjudged(m.classes[0].At, "", "%s is an attribute of a class of tasks: how often those are retried is not judged in this file", m.classes[0].Key)
	}
	if len(m.open) > 0 {
		r.unjudged(m.open[0].At, "", "what is handed over here is not known: it may be settings of retries; so it is with all such in this file")
	}
	for _, name := range []string{"broker_use_ssl", "redis_backend_use_ssl"} {
		for _, p := range m.settings[name] {
			r.celeryTLS(name, p)
		}
	}
}

// celeryTLS looks for a broker or a backend whose certificate is not verified.
func (r *reader) celeryTLS(name string, p tree.Pair) {
	for _, key := range []string{"cert_reqs", "ssl_cert_reqs"} {
		if v := p.Value.Get(key); v != nil && (strings.HasSuffix(v.Text(), "CERT_NONE") || strings.EqualFold(v.Text(), "none")) {
			d := policyfile.Dependency{Name: name, At: v.At}
			r.refuse(v.At, "R-9", &d, "tls.verify", "%s accepts any certificate", key)
		}
	}
}
