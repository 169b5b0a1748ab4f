package foreign

import (
	"strings"
	"testing"
)

// Software without a reader is named: as a fault where its file sets retries, and as what
// an unrecognized file is where it does not.
func TestRecognized(t *testing.T) {
	const unread = ": forbear does not read this format"
	for _, tt := range []struct{ software, file, sets, silent string }{
		{"App Mesh", "a.yaml", "apiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualRouter\nspec: {routes: [{httpRoute: {retryPolicy: {maxRetries: 9}}}]}\n", "apiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualNode\nspec: {}\n"},
		{"App Mesh", "a.json", `{"Resources": {"R": {"Type": "AWS::AppMesh::Route", "Properties": {"Spec": {"RetryPolicy": {"MaxRetries": 9}}}}}}`, ""},
		{"App Mesh", "a.json", `{"routeName": "r", "virtualRouterName": "a", "spec": {"httpRoute": {"retryPolicy": {"maxRetries": 9}}}}`, ""},
		{"Argo CD", "a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {syncPolicy: {retry: {limit: 9}}}\n", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {syncPolicy: {automated: {}}}\n"},
		{"Argo Events", "a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nspec: {triggers: [{retryStrategy: {steps: 9}}]}\n", "apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nspec: {triggers: []}\n"},
		{"Caddy", "Caddyfile", ":80 {\n reverse_proxy a:80 {\n  lb_retries 9\n }\n}\n", ":80 {\n reverse_proxy a:80\n}\n"},
		{"Caddy", "a.json", `{"handler": "reverse_proxy", "load_balancing": {"retries": 9}}`, `{"handler": "reverse_proxy"}`},
		{"Caddy", "a.yaml", "kind: ConfigMap\ndata:\n  Caddyfile: |\n    reverse_proxy a:80 {\n      lb_try_duration 9s\n    }\n", ""},
		{"Celery", "shop/celery.py", "app.conf.task_publish_retry_policy = {}\n", "app.conf.task_acks_late = True # retry\n"},
		{"Celery", "shop/settings.py", "CELERY_TASK_PUBLISH_RETRY = True\n", ""},
		{"Celery", "shop/tasks.py", "@shared_task(bind=True,\n  max_retries=9)\ndef a(): pass\n", ""},
		{"Celery", "a.yaml", "kind: ConfigMap\ndata:\n  celeryconfig.py: |\n    broker_url = 'x'\n    task_annotations = {'a': {'max_retries': 9}}\n", ""},
		{"Consul", "a.hcl", "Kind = \"service-router\"\nRoutes = [{ Destination { NumRetries = 9 } }]\n", ""},
		{"Consul", "a.json", `{"Kind": "http-route", "Rules": [{"Filters": {"RetryFilter": {"NumRetries": 9}}}]}`, `{"Kind": "http-route"}`},
		{"Consul", "a.yaml", "apiVersion: consul.hashicorp.com/v1alpha1\nkind: RouteRetryFilter\nspec: {}\n", "apiVersion: consul.hashicorp.com/v1alpha1\nkind: ServiceRouter\nspec: {}\n"},
		{"the first API of Envoy", "a.json", `{"listeners": [{"filters": [{"config": {"retry_policy": {"num_retries": 9}}}]}], "cluster_manager": {"clusters": []}}`, ""},
		{"EnvoyFilter", "a.yaml", "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec: {configPatches: [{applyTo: HTTP_ROUTE, patch: {value: {route: {retry_policy: {num_retries: 9}}}}}]}\n", "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nspec: {configPatches: []}\n"},
		{"Kuma", "a.yaml", "apiVersion: kuma.io/v1alpha1\nkind: MeshRetry\nspec: {to: [{default: {tcp: {maxConnectAttempt: 9}}}]}\n", ""},
		{"Kuma", "a.yaml", "type: Retry\nname: r\ndestinations: []\nconf: {}\n", ""},
		{".NET", "appsettings.json", "{\n  // ours\n  \"A\": {\"Retry\": {\"MaxRetryAttempts\": 9}}}", ""},
		{".NET", "a.json", `{"A": {"AttemptTimeout": {}, "TotalRequestTimeout": {}}}`, ""},
		{".NET", "a.json", `{"RetryOptions": {"maxRetryAttempts": 9, "backoffType": "Constant"}}`, ""},
		{"Sidekiq", "config/sidekiq.yml", ":concurrency: 5\n", ""},
		{"Sidekiq", "jobs.yml", ":max_retries: 9\n", ""},
		{"Temporal", "a.yaml", "a: {retry_policy: {maximum_attempts: 9, initial_interval: 1s}}\n", ""},
		{"Temporal", "a.yaml", "history.defaultActivityRetryPolicy: [{value: {MaximumAttempts: 4}}]\n", ""},
		{"Traefik", "a.yaml", "http: {middlewares: {m: {retry: {attempts: 9}}}}\n", "http: {routers: {r: {service: s}}}\n"},
		{"Traefik", "a.yaml", "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nspec: {buffering: {retryExpression: 'Attempts() < 9'}}\n", "apiVersion: traefik.containo.us/v1alpha1\nkind: IngressRoute\nspec: {}\n"},
		{"Traefik", "a.toml", "[http.middlewares.m.retry]\nattempts = 9\n", ""},
		{"Traefik", "compose.yaml", "services: {a: {labels: ['traefik.http.middlewares.m.retry.attempts=9']}}\n", "services: {a: {labels: ['traefik.http.routers.a.rule=x']}}\n"},
		{"Traefik", "compose.yaml", "services: {a: {labels: {traefik.http.middlewares.m.retry.attempts: 9}}}\n", ""},
	} {
		opened := Open(tt.file, []byte(tt.sets), "")
		if len(opened.Faults) != 1 || opened.Faults[0].Message != tt.software+unread || len(opened.Parts) > 0 || opened.Retry.Line > 0 {
			t.Errorf("%s %q: got %+v", tt.file, tt.sets, opened)
		}
		if opened = Open(tt.file, []byte(tt.silent), ""); tt.silent != "" && (opened.Why != tt.software+unread || len(opened.Faults) > 0) {
			t.Errorf("%s %q: got %+v", tt.file, tt.silent, opened)
		}
	}
	// What is known stands in the same file, and is judged all the same.
	const sensor = "apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nspec: {triggers: [{retryStrategy: {steps: 9}, source: {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {backoffLimit: 50}}}]}\n"
	holds(t, said("a.yaml", sensor), []string{"fault 3: Argo Events" + unread, "Job j [] x51"}, []string{"a setting for retries"})
	if got := Open("a.yaml", []byte("http: {middlewares: {m: {retry: {attempts: 9}}}}\n"), "istio"); len(got.Faults) > 0 {
		t.Errorf("a file of another format that was given: got %v", got.Faults)
	}
	// Lines of a notation that no reader needs are looked at, and no comment.
	for text, want := range map[string]int{"[net]\n# retry = 1\nretry = 2\n": 3, "a \"b\" {\n  max_retries = 9\n}\n": 2, "[client.retry]\na = 1\n": 1, "retrieve = 1\n": 0} {
		if got := Open("Cargo.toml", []byte(text), ""); got.Retry.Line != want || strings.HasPrefix(got.Why, "T") {
			t.Errorf("%q: got %v", text, got.Retry)
		}
	}
}
