package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

const throttled = `{"methodConfig": [{"name": [{"service": "a.B"}], "timeout": "1s", "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}`

// No value of a kind that a reader does not expect ends the run: every value of every
// fixture becomes each of these in turn.
func TestValuesOfEveryKind(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	texts := map[string][]byte{"throttling.json": []byte(throttled)}
	for _, file := range files {
		if texts[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for file, data := range texts {
		replaced := 0
		for _, part := range Open(file, data, "").Parts {
			var places []*tree.Node
			part.Root.Walk(func(n *tree.Node) bool { places = append(places, n); return true })
			for _, n := range places {
				was := *n
				for _, other := range []tree.Node{
					{},
					{Kind: tree.Map},
					{Kind: tree.List},
					{Value: "text"},
					{Value: "7"},
					{Value: "-1"},
					{Value: "99999999999999999999"},
					{Kind: tree.List, Items: []*tree.Node{{Value: "7"}}},
					{Kind: tree.Map, Pairs: []tree.Pair{{Key: "x", Value: &tree.Node{Value: "7"}}}},
				} {
					other.At = was.At
					*n = other
					replaced++
					Read([]Part{part}) // which panics where a reader takes a value for granted
				}
				*n = was
			}
		}
		structured := strings.Contains(".yaml .yml .json .properties .ini", filepath.Ext(file))
		if structured && replaced == 0 {
			t.Errorf("%s: nothing was replaced", file)
		}
	}
}

// A duration that cannot be read is said to be unknown. It neither means that there is none,
// nor that the default holds.
func TestUnreadDurations(t *testing.T) {
	const unread = `"${T}" is not a duration`
	gateway := func(filter string) string {
		return "spring: {cloud: {gateway: {routes: [{id: a, uri: 'lb://b', filters: [{name: Retry, " + filter + "}]}]}}}\n"
	}
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"Envoy's timeout", "e.yaml", "virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: c, timeout: '${T}', retry_policy: {retry_on: connect-failure}}}]}]\n", nil},
		{"Envoy's attempt", "e.yaml", "virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: c, retry_policy: {retry_on: connect-failure, per_try_timeout: '${T}'}}}]}]\n", nil},
		{"Istio's timeout", "i.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {http: [{timeout: '${T}', retries: {attempts: 2, retryOn: connect-failure}, route: [{destination: {host: b}}]}]}\n", nil},
		{"a Gateway's timeout", "g.yaml", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {rules: [{timeouts: {request: '${T}'}, backendRefs: [{name: b}], retry: {attempts: 2}}]}\n", nil},
		{"Linkerd's timeout", "l.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s, annotations: {retry.linkerd.io/http: 5xx, timeout.linkerd.io/request: '${T}'}}\n", nil},
		{"ingress-nginx's attempt", "n.yaml", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, annotations: {nginx.ingress.kubernetes.io/proxy-read-timeout: '${T}'}}\nspec: {defaultBackend: {service: {name: s}}}\n", nil},
		{"Argo's bound", "w.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec: {templates: [{name: a, retryStrategy: {limit: 2, backoff: {duration: 1s, factor: 2, maxDuration: '${T}'}}}]}\n", nil},
		{"Argo's waits", "w.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec: {templates: [{name: a, retryStrategy: {limit: 2, backoff: {duration: '${T}', factor: 2, maxDuration: 9m}}}]}\n", nil},
		{"resilience4j's attempt", "application.yml", "resilience4j:\n  retry: {instances: {a: {maxAttempts: 3, enableRandomizedWait: true}}}\n  timelimiter: {instances: {a: {timeoutDuration: '${T}'}}}\n", nil},
		{"resilience4j's waits", "application.yml", "resilience4j:\n  retry: {instances: {a: {maxAttempts: 3, waitDuration: '${T}'}}}\n", []string{"waits equally long before every retry"}},
		{"resilience4j's longest wait", "application.yml", "resilience4j:\n  retry: {instances: {a: {maxAttempts: 3, enableExponentialBackoff: true, exponentialMaxWaitDuration: '${T}'}}}\n", nil},
		{"a gateway route's bound", "application.yml", gateway("args: {timeout: '${T}'}"), nil},
		{"a gateway route's waits", "application.yml", gateway("args: {timeout: 9s, backoff: {firstBackoff: '${T}'}}"), nil},
		{"a gateway route's attempt", "application.yml", gateway("args: {timeout: 9s}}], metadata: {response-timeout: '${T}'}, x: [{"), nil},
		{"Feign's attempt", "application.yml", "feign: {client: {config: {a: {retryer: feign.Retryer.Default, readTimeout: '${T}'}}}}\n", nil},
		{"a listener's waits", "application.yml", "spring: {rabbitmq: {listener: {simple: {retry: {enabled: true, initialInterval: '${T}'}}}}}\n", []string{"waits equally long before every retry"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			holds(t, said(tt.file, tt.text), append(tt.want, unread), []string{"switches", "bounds nothing", "the middleware has no timeout", "no timeout bounds", "neither maxDuration", "no timeout of Retry", "waits 500ms", "waits 1s"})
		})
	}
}

// A factor that cannot be read is said to be unknown, too.
func TestUnreadFactors(t *testing.T) {
	const unread = `"${F}" is not a number`
	for _, tt := range []struct{ name, text string }{
		{"resilience4j's growth", "resilience4j:\n  retry: {instances: {a: {maxAttempts: 3, enableExponentialBackoff: true, exponentialBackoffMultiplier: '${F}'}}}\n"},
		{"resilience4j's jitter", "resilience4j:\n  retry: {instances: {a: {maxAttempts: 3, enableRandomizedWait: true, randomizedWaitFactor: '${F}'}}}\n"},
		{"a gateway's growth", "spring: {cloud: {gateway: {routes: [{id: a, uri: 'lb://b', filters: [{name: Retry, args: {backoff: {factor: '${F}'}}}]}]}}}\n"},
		{"a listener's growth", "spring: {rabbitmq: {listener: {simple: {retry: {enabled: true, multiplier: '${F}'}}}}}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("application.yml", tt.text), []string{unread}, nil) })
	}
}

// What stands in one map with a product's settings, or inside of what it holds, is looked
// at by itself.
func TestSettingsOfOthersWithin(t *testing.T) {
	const beside = "a retry setting that check does not read"
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"values beside a mesh", "a.yaml", "kind: IstioOperator\nspec:\n  meshConfig: {defaultHttpRetryPolicy: {attempts: 1}}\n  values: {client: {maxRetries: 50}}\n", []string{"unread 4: " + beside}, nil},
		{"the environment of a Job", "j.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  backoffLimit: 2\n  template: {spec: {containers: [{name: c, env: [{name: AWS_MAX_ATTEMPTS, value: '3'}, {name: CLIENT_MAX_RETRIES, value: '50'}]}]}}\n", []string{"aws/c [c] x3", "6: " + beside}, nil},
		{"a Job alone", "j.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  backoffLimit: 2\n  template: {spec: {containers: [{name: c, env: [{name: AWS_MAX_ATTEMPTS, value: '3'}]}]}}\n", []string{"aws/c [c] x3"}, []string{beside}},
		{"a workflow that a sensor creates", "s.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nmetadata: {name: s}\nspec:\n  triggers: [{template: {name: a, argoWorkflow: {source: {resource: {apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w}, spec: {templates: [{name: b, retryStrategy: {limit: 50}}]}}}}}}]\n", []string{"Workflow w/b [] x51"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}

// Null is what is not there, zero is a figure, and a figure may be large.
func TestOddFigures(t *testing.T) {
	throttling := func(v string) string {
		return strings.Replace(throttled, `{"maxTokens": 10, "tokenRatio": 0.1}`, v, 1)
	}
	istio := func(retries string) string {
		return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {http: [{timeout: 25s, retries: {retryOn: connect-failure, " + retries + "}, route: [{destination: {host: b}}]}]}\n"
	}
	workflow := func(longest string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec: {templates: [{name: a, retryStrategy: {limit: 2, backoff: {duration: 1s, factor: 2, maxDuration: " + longest + "}}}]}\n"
	}
	job := func(fields string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {" + fields + ", template: {spec: {}}}\n"
	}
	for _, tt := range []struct {
		name, file, text string
		want, not        []string
	}{
		{"no throttling", "g.json", throttling("null"), []string{"R-7 budget: no retryThrottling"}, nil},
		{"throttling of no form", "g.json", throttling("[]"), []string{"refuses the whole service config: retryThrottling is not an object"}, nil},
		{"no retry policy", "g.json", `{"methodConfig": [{"name": [{"service": "a.B"}], "retryPolicy": null, "hedgingPolicy": {"maxAttempts": 3}}]}`, []string{"a.B [a.B] x3"}, []string{"refuses"}},
		{"an attempt of zero", "i.yaml", istio("attempts: 2, perTryTimeout: 0s"), []string{"attempt 25s"}, nil},
		{"waits without an end", "i.yaml", istio("attempts: 2, perTryTimeout: 1s, backoff: 300000h"), []string{"R-1 backoff.base"}, []string{"waits up to -"}},
		{"Argo's bound of zero", "w.yaml", workflow("'0'"), []string{"R-3 total.missing: nothing bounds its retries in time"}, []string{"is no duration"}},
		{"Argo's bound of null", "w.yaml", workflow("null"), []string{"R-3 total.missing: nothing bounds its retries in time"}, []string{"is no duration"}},
		{"a Job's template", "j.yaml", job("backoffLimit: '${N}'"), []string{`"${N}" is not a number`, "x7 at least"}, []string{"R-2"}},
		{"a Job without a deadline", "j.yaml", job("backoffLimit: 2, activeDeadlineSeconds: null"), []string{"has no activeDeadlineSeconds"}, nil},
		{"Spring's topics", "a.yaml", "spring: {kafka: {retry: {topic: {enabled: true, attempts: 4, delay: 1s, multiplier: 2}}}}\n", []string{"x4, waits up to 4s"}, nil},
		{"nginx's tries", "n.conf", "server { location / { proxy_pass http://10.0.0.1; proxy_next_upstream_tries 200000000; proxy_next_upstream_timeout 5s; } }\n", nil, []string{"-"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said(tt.file, tt.text), tt.want, tt.not) })
	}
}

// Envoy Gateway's policies hold for routes that Linkerd reads, too.
func TestRouteOfTwo(t *testing.T) {
	holds(t, said("r.yaml", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, annotations: {timeout.linkerd.io/request: 9s}}\nspec: {rules: [{backendRefs: [{name: b}]}]}\n---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\nspec: {targetRefs: [{kind: HTTPRoute, name: r}], retry: {numRetries: 2}}\n"),
		[]string{"b [r  p] x3"}, []string{"is not in these files"})
}
