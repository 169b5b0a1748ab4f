package foreign

import "testing"

func TestCelery(t *testing.T) {
	const (
		off    = "task_publish_retry = False\n"
		policy = "{'broker_url': 'x', 'task_publish_retry_policy': {'max_retries': 50}}"
	)
	fifty := []string{"publishing of tasks [] x51"}
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"the defaults", "celery.py", "broker_url = 'x'\n", []string{"publishing of tasks [] x4, waits up to 400ms", "cannot R-3 total.missing"}, []string{"note", "R-2"}},
		{"retries off", "celery.py", off, []string{"quiet 1\n"}, []string{"] x", "note"}},
		{"retries off in one of two places", "celery.py", "if A:\n    task_publish_retry_policy = {'max_retries': 50}\nelse:\n    task_publish_retry = False\n    task_publish_retry = True\n", fifty, nil},
		{"retries off, or a policy", "celery.py", "if A:\n    task_publish_retry_policy = {'max_retries': 50}\nelse:\n    task_publish_retry = False\n", []string{"quiet 1", "note 2"}, nil},
		{"two values", "celery.py", "task_publish_retry_policy = {'max_retries': 50}\ntask_publish_retry_policy = {'max_retries': 3}\n", append(fifty, "publishing of tasks [] x4"), nil},
		{"more than is written", "celery.py", "task_publish_retry_policy = {'max_retries': 3, **more}\n", []string{"x4 at least", "note 1"}, nil},

		{"a dict of settings", "celery.py", "CELERY_CONFIG = " + policy, fifty, nil},
		{"a dict that a function returns", "celery.py", "def f():\n  return " + policy, fifty, nil},
		{"a dict for the app", "celery.py", "app.config_from_object(" + policy + ")", fifty, nil},
		{"settings for the app", "celery.py", "app = Celery('a', broker='x', task_publish_retry_policy={'max_retries': 50})", fifty, nil},
		{"settings within Flask's", "app.py", "# celery\napp.config.from_mapping(CELERY=dict(task_publish_retry_policy=dict(max_retries=50)))", fifty, nil},
		{"a name of version 3", "settings.py", "CELERY_PUBLISH_RETRY_POLICY = {'max_retries': 50}\n", fifty, nil},
		{"settings from elsewhere", "celery.py", off + "app.conf.update(get_settings())\n", []string{"note 2"}, nil},

		{"a key of a setting", "celery.py", off + "task_annotations = {}\ntask_annotations['a'] = {'max_retries': 50}\n", []string{"task a [] x51"}, nil},
		{"an update of a setting", "celery.py", off + "app.conf.task_annotations.update({'a': {'max_retries': 50}})\n", []string{"task a [] x51"}, nil},
		{"an attribute from elsewhere", "celery.py", off + "task_annotations = {'a': {'max_retries': 3, **more}}\n", []string{"task a [] x4 at least", "note 2"}, nil},
		{"waits that are not known", "celery.py", off + "task_annotations = {'a': {'max_retries': 3, 'default_retry_delay': N, 'autoretry_for': (OSError,)}}\n", []string{"task a [] x4", "note 2"}, []string{"R-1"}},
		{"a cap and chance that are not known", "celery.py", off + "task_annotations = {'a': {'retry_backoff': True, 'retry_backoff_max': N, 'retry_jitter': J}}\n", []string{"note 2: task a: \"N\"", "note 2: task a: \"J\""}, nil},
		{"attributes of a task from elsewhere", "tasks.py", "# celery\n@app.task(**OPTIONS)\ndef f(): pass\n", []string{"task f [] x4 at least", "note 2"}, nil},
		{"arguments of its retry from elsewhere", "tasks.py", "# celery\n@app.task(autoretry_for=(OSError,), retry_kwargs=KW)\ndef f(): pass\n", []string{"task f [] x4 at least", "note 2"}, []string{"R-1"}},
		{"a class of tasks", "tasks.py", "from celery import Task\nclass A(Task):\n    autoretry_for = (OSError,)\n    retry_kwargs = {'max_retries': 50}\n", []string{"note 3"}, []string{"] x", "note 4"}},

		{"a lost worker", "celery.py", off + "task_acks_late = True\ntask_reject_on_worker_lost = True\n", []string{"tasks whose worker is lost [] x6 at least", "3 R-2 max_retries"}, nil},
		{"a lost worker, perhaps", "celery.py", off + "task_acks_late = env('A')\ntask_reject_on_worker_lost = True\n", []string{"tasks whose worker is lost [] x6 at least", "note 3"}, []string{"R-2"}},
		{"a lost worker of tasks that say so", "celery.py", off + "task_reject_on_worker_lost = True\n", []string{"note 2"}, []string{"] x"}},
		{"messages that come again", "celery.py", off + "broker_transport_options = {'visibility_timeout': 30}\n", []string{"note 2: a task that is not acknowledged within 30s"}, nil},

		{"results that are always kept", "celery.py", off + "result_backend_always_retry = True\nresult_backend_max_retries = 3\nresult_backend_base_sleep_between_retries_ms = 500\nresult_backend_max_sleep_between_retries_ms = 60000\n", []string{"result backend [] x4, waits up to 1m0s"}, []string{"R-2"}},
		{"results that are kept, perhaps", "celery.py", off + "result_backend_always_retry = env('A')\n", []string{"result backend [] x6 at least", "note 2"}, []string{"R-2"}},
		{"results in Redis", "celery.py", off + "app = Celery('a', backend='redis://a')\n", []string{"results in Redis [] x21, waits up to 1s", "note 2: nothing is said of how results in Redis are kept"}, nil},
		{"results in Redis that are bounded", "celery.py", off + "result_backend = 'redis://a'\nresult_backend_transport_options = {'retry_policy': {'max_retries': 4, 'timeout': 5.0}}\n", []string{"results in Redis [] x5, waits up to 1s, attempt 0s, total 5s"}, []string{"R-2", "total.missing"}},
		{"no results", "celery.py", off + "result_backend = 'redis://a'\ntask_ignore_result = True\n", nil, []string{"Redis"}},

		{"connections", "celery.py", off + "broker_transport_options = {'max_retries': 500, 'interval_start': 0, 'interval_step': 0.2, 'interval_max': 0.5}\n", []string{"connections to the broker [] x501, waits up to 500ms", "2 R-2"}, nil},
		{"connections without an end", "celery.py", off + "broker_transport_options = {'max_retries': None}\n", []string{"connections to the broker [] x4 at least", "2 R-2"}, nil},
		{"workers that connect for ever", "celery.py", off + "broker_connection_max_retries = None\n", []string{"note 2"}, []string{"] x"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}

// A text in a program is not the file of another one.
func TestPythonAlone(t *testing.T) {
	for _, text := range []string{"server { location / { proxy_pass http://a; } }\n", "a = f'{{b}}' # retry\n"} {
		if got := said("a.py", text); got != "" {
			t.Error(got)
		}
	}
}
