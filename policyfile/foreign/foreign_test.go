//forbear:plain files are read on one goroutine
package foreign

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNginxTime(t *testing.T) {
	for s, want := range map[string]time.Duration{"30": 30 * time.Second, "500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0} {
		if got, ok := nginxTime(s); !ok || got != want {
			t.Errorf("nginxTime(%q) = %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"x", "5y", "s"} {
		if got, ok := nginxTime(s); ok {
			t.Errorf("nginxTime(%q) = %v, want none", s, got)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"f.conf", "http {\n  proxy_pass http://a;\n", "f.conf:3:1: a block has no end"},
		{"f.conf", "server {} http }", `"http" has no end`},
		{"f.conf", "proxy_pass http://a; listen 80", `"listen" has no end`},
		{"f.conf", strings.Repeat("http {", 60), "nested more than 50 deep"},
		{"f.json", `{"methodConfig": [{"retryPolicy": `, "not JSON: the file ends in the middle of a value"},
		{"f.json", "{\n  // three times\n  \"methodConfig\": [{\"retryPolicy\": {}}]}", "f.json:2:3: not JSON: it has comments"},
		{"f.yaml", "a: {{ .Values.retries }}\nb: [\n", "a template: render it"},
		{"f.yaml", "kind: VirtualService\napiVersion: networking.istio.io/v1\nspec:\n  http: [{retries: {attempts: 1, attempts: 50}}]\n", "f.yaml:4:34: a key appears twice here"},
		{"f.yaml", "kind: Workflow\napiVersion: argoproj.io/v1alpha1\nspec:\n  source: {kind: Job, apiVersion: batch/v1, spec: {backoffLimit: 1, backoffLimit: 50}}\n", "f.yaml:4:69: a key appears twice here"},
		{"f.yaml", "kind: ConfigMap\ndata:\n  envoy.json: |\n    {\"a\": 1, // retries\n    \"static_resources\": {}}\n", "f.yaml:4:"},
	} {
		opened := Open(tt.name, []byte(tt.data), "")
		if len(opened.Faults) != 1 || !strings.Contains(opened.Faults[0].Error(), tt.want) {
			t.Errorf("%s %q: got %v, want %s", tt.name, tt.data, opened.Faults, tt.want)
		}
	}
	if opened := Open("f", nil, "other"); len(opened.Faults) != 1 || !strings.Contains(opened.Faults[0].Error(), `unknown format "other"`) {
		t.Errorf("got %v", opened.Faults)
	}
}

// formats says what a file is taken for.
func formats(name, data string) string {
	opened := Open(name, []byte(data), "")
	var found []string
	for range opened.Policies {
		found = append(found, "forbear")
	}
	for _, p := range opened.Parts {
		found = append(found, p.Format)
	}
	if len(opened.Faults) > 0 {
		found = append(found, "fault")
	}
	return strings.Join(found, " ")
}

// What a file is does not hang on words in its values and comments.
func TestOpen(t *testing.T) {
	const vs = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: []}\n"
	for _, tt := range []struct{ name, file, text, want string }{
		{"policy", "p.yaml", "service: a\ndependencies: {b: {owner: a}}\n", "forbear"},
		{"policy that speaks of nginx", "p.yaml", "service: a\ndependencies:\n  b: {owner: a, other_layers: \"nginx has proxy_pass and methodConfig\"}\n", "forbear"},
		{"policy with a comment", "p.yaml", "# static_resources: none; networking.istio.io/ is off\nservice: a\ndependencies: {b: {owner: a}}\n", "forbear"},
		{"policy called a conf", "p.conf", "service: a\ndependencies: {b: {owner: a}}\n", "forbear"},
		{"policy in JSON", "p.json", `{"service": "a", "dependencies": {"b": {"other_layers": "virtual_hosts"}}}`, "forbear"},
		{"policy in JSON with the commas of YAML", "p.json", "{\"webhooks\": {\"b\": {\"max_attempts\": 50,},},}", "forbear"},
		{"policy in JSON with a comment", "p.json", "{\"dependencies\": {\"b\": {\"total\": \"10m\"}} # ten\n}", "forbear"},
		{"settings with a last comma", "p.json", "{\"dependencies\": {\"b\": \"1\",},}", ""},
		{"crates", "Cargo.toml", "[package]\nname = 'a'\n\n[dependencies]\nb = { version = '1' }\n", ""},
		{"policy called a TOML", "p.toml", "service: a\ndependencies: {b: {owner: a}}\n", "forbear"},
		{"policy with an unknown key", "p.yaml", "service: a\nstatic: 1\ndependencies: {b: {owner: a}}\n", "forbear"},
		{"policy with a slip", "p.yaml", "service: a\ndependancies: {b: {owner: a}}\n", "forbear"},
		{"dependencies of a program", "package.json", `{"name": "a", "version": "1", "dependencies": {"left-pad": "^1.0.0"}}`, ""},
		{"dependencies of a chart", "Chart.yaml", "dependencies:\n  - name: redis\n", ""},
		{"lock file", "package-lock.json", `{"name": "a", "version": "1", "lockfileVersion": 1, "requires": true, "dependencies": {"b": {"version": "1"}}}`, ""},
		{"defaults", "d.yaml", "defaults:\n  a: b\n", ""},
		{"backend", "b.yaml", "backend: x\n", ""},
		{"list of Kubernetes", "l.yaml", "apiVersion: v1\nkind: List\nitems:\n  - {apiVersion: networking.istio.io/v1, kind: VirtualService, spec: {http: []}}\n", "istio"},
		{"documents", "d.yaml", "kind: Deployment\n---\n" + vs + "---\n" + vs, "istio istio"},
		{"config map", "c.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  nginx.conf: |\n    server { location / { proxy_pass http://a; } }\n  haproxy.cfg: |\n    defaults\n      retries 50\n    backend a\n      server a a:80\n  envoy.yaml: |\n    static_resources: {}\n  service.json: '{\"methodConfig\": []}'\n  policy.yaml: |\n    service: a\n    dependencies: {b: {owner: a}}\n", "forbear nginx haproxy envoy grpc"},
		{"secret", "s.yaml", "apiVersion: v1\nkind: Secret\ndata: {haproxy.cfg: ZGVmYXVsdHMKIHJldHJpZXMgNTAKYmFja2VuZCBhCiBzZXJ2ZXIgYSBhOjgwCg==, password: aHVudGVyMg==, broken: '!'}\n", "haproxy"},
		{"binary data", "c.yaml", "kind: ConfigMap\nbinaryData: {envoy.yaml: c3RhdGljX3Jlc291cmNlczoge30KYWRtaW46IHt9Cg==}\n", "envoy"},
		{"documents in a config map", "c.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  mesh.yaml: |\n    ---\n    kind: Service\n    ---\n    apiVersion: networking.istio.io/v1\n    kind: VirtualService\n    spec: {http: []}\n    ...\n", "istio"},
		{"policy behind a mark in a config map", "c.yaml", "apiVersion: v1\nkind: ConfigMap\ndata:\n  policy.yaml: |\n    ---\n    service: a\n    dependencies: {b: {owner: a}}\n", "forbear"},
		{"values of a chart", "values.yaml", "app:\n  grpc:\n    serviceConfig: |\n      {\"methodConfig\": [{\"retryPolicy\": {\"maxAttempts\": 50}}]}\n", "grpc"},
		{"envoy's admin", "dump.json", `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": []}]}`, "envoy"},
		{"clusters of istioctl", "clusters.json", `[{"name": "outbound|80||a.b.svc.cluster.local", "type": "EDS", "connectTimeout": "10s", "lbPolicy": "LEAST_REQUEST"}]`, "envoy"},
		{"records of gRPC", "txt.json", `[{"percentage": 10, "serviceConfig": {"methodConfig": []}}]`, "grpc"},
		{"merge key", "m.yaml", "base: &b {apiVersion: networking.istio.io/v1, kind: VirtualService}\nvs:\n  <<: *b\n  spec: {http: []}\n", "istio"},
		{"job", "j.yaml", "apiVersion: batch/v1\nkind: Job\nspec: {template: {}}\n", "k8sjob"},
		{"job with the settings of its program", "j.yaml", "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n        - env:\n            - name: SERVICE_CONFIG\n              value: |\n                {\"methodConfig\": []}\n", "k8sjob grpc"},
		{"job of another group", "j.yaml", "apiVersion: example.com/v1\nkind: Job\nspec: {backoffLimit: 9}\n", ""},
		{"workflow that starts a job", "w.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec:\n  templates:\n    - name: a\n      resource:\n        action: create\n        manifest: |\n          apiVersion: batch/v1\n          kind: Job\n          spec: {backoffLimit: 9}\n", "argo k8sjob"},
		{"another application", "a.yaml", "apiVersion: app.k8s.io/v1beta1\nkind: Application\nspec: {syncPolicy: {retry: {limit: 9}}}\n", ""},
		{"state machine", "m.asl", `{"StartAt": "a", "States": {"a": {"Type": "Task", "Retry": []}}}`, "stepfunctions"},
		{"state machine in a template", "t.yaml", "Resources:\n  M:\n    Type: AWS::StepFunctions::StateMachine\n    Properties:\n      DefinitionString: !Sub |\n        {\"StartAt\": \"a\", \"States\": {\"a\": {\"Type\": \"Pass\"}}}\n", "stepfunctions"},
		{"redrive policy of a queue", "t.yaml", "Properties:\n  RedrivePolicy: {maxReceiveCount: 9}\n  RetryPolicy: {MaximumRetryAttempts: 9}\n", ""},
		{"policy with a key of Temporal's", "t.yaml", "a: {retryPolicy: {maximumAttempts: 9, interval: 2}}\n", ""},
		{"queues of Shoryuken", "workers.yml", ":aws: {region: eu}\n:concurrency: 5\n:delay: 25\n:queues: [a]\n", ""},
		{"queues of another program", "workers.yml", "concurrency: 5\nqueues: [a]\n", ""},
		{"jobs of Sidekiq's scheduler", "config/sidekiq_cron.yml", "nightly: {cron: 0 3 * * *, class: Nightly, queue: a}\n", ""},
		{"tasks that say nothing of retries", "shop/tasks.py", "from celery import shared_task\n@shared_task\ndef a(): retries = 9\n", ""},
		{"an app whose settings are elsewhere", "shop/celery.py", "app.config_from_object('django.conf:settings', namespace='CELERY')\n@app.task(ignore_result=True)\ndef a(): pass\n", ""},
		{"another program in Python", "settings.py", "task_routes = {}\nmax_retries = 9\n# celery: [\n", ""},
		{"health check of Compose", "docker-compose.yml", "services:\n  a:\n    healthcheck: {test: [CMD, x], retries: 9}\n    deploy: {restart_policy: {max_attempts: 9}}\n", ""},
		{"workflow of GitHub", ".github/workflows/ci.yml", "on: push\njobs:\n  a:\n    steps:\n      - {uses: x/retry@v3, with: {max_attempts: 9, retry_on: error}}\n    services: {db: {options: --health-retries 9}}\n", ""},
		{"settings with comments", "tsconfig.json", "{\n // strict\n \"compilerOptions\": {}}", ""},
		{"Ingress of another controller", "i.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {annotations: {nginx.org/proxy-read-timeout: 1s}}\nspec: {ingressClassName: nginx}\n", ""},
		{"Ingress of no class", "i.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {rules: []}\n", ""},
		{"values for an Ingress", "values.yaml", "ingress:\n  annotations:\n    nginx.ingress.kubernetes.io/proxy-next-upstream-tries: '9'\n", "ingressnginx"},
		{"values for ingress-nginx", "values.yaml", "controller:\n  config: {proxy-next-upstream: error}\n", "ingressnginx"},
		{"route of Gateway API", "r.yaml", "apiVersion: gateway.networking.k8s.io/v1beta1\nkind: HTTPRoute\nspec: {rules: []}\n", "gatewayapi"},
		{"template by chance", "t.yaml", "retries: {{ .Values.retries }}\n", "fault"},
		{"template of a job", "t.yaml", "apiVersion: batch/v1\nkind: Job\nspec:\n  {{- with .Values.limit }}\n  backoffLimit: {{ . }}\n  {{- end }}\n", "fault"},
		{"template that retrieves something", "t.yaml", "a: {{ .Values.retriever }}\n", ""},
		{"template in a key", "t.yaml", "'{{ .Values.name }}': {retries: 9}\n", "fault"},
		{"alert with actions in its text", "a.yaml", "groups:\n- rules:\n  - annotations: {summary: '{{ $labels.pod }} has many retries'}\n", ""},
		{"workflow with expressions", "ci.yml", "jobs: {a: {steps: [{run: 'retry ${{ secrets.X }}'}]}}\n", ""},
		{"nothing", "e.yaml", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := formats(tt.file, tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A text inside of a file keeps its own lines.
func TestInnerLines(t *testing.T) {
	const text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  default.conf: |\n    # edge\n    server {\n      location / {\n        proxy_next_upstream off;\n        proxy_pass https://payments;\n      }\n    }\n"
	results := Read(Open("c.yaml", []byte(text), "").Parts)
	if len(results) != 1 || len(results[0].File.Dependencies) != 1 {
		t.Fatalf("got %v", results)
	}
	if at := results[0].File.Dependencies[0].At.String(); at != "c.yaml:9:9" {
		t.Errorf("got %s, want c.yaml:9:9", at)
	}
}

// No input makes an adapter panic, and what it notes lies in the file.
func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*-*.*")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(name, format string) {
			opened := Open(name, data, format)
			faults := opened.Faults
			for _, result := range Read(opened.Parts) {
				faults = slices.Concat(faults, result.Refused, result.File.Unjudged, result.File.Limits)
			}
			for _, fault := range faults {
				if fault.Line < 1 || fault.Column < 1 || fault.File != name {
					t.Errorf("%s: fault %+v", format, fault)
				}
			}
		}
		for _, format := range append(Formats(), "", "forbear") {
			read("f", format)
		}
		for _, name := range []string{"f.toml", "f.hcl", "Caddyfile", "celery.py", "f.ini", "f.properties"} {
			read(name, "")
		}
	})
}
