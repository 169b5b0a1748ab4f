package foreign

import (
	"regexp"
	"strings"
	"testing"
)

// A count that cannot be read, as a template's variable, makes a figure of which only
// the lower end is known; and one beyond all sense is not taken for none.
func TestCounts(t *testing.T) {
	for name, file := range map[string]string{
		"envoy":         "virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a, retry_policy: {retry_on: 5xx, num_retries: COUNT}}}]}]",
		"istio":         "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: a}}], retries: {attempts: COUNT}}]}",
		"istio's mesh":  "defaultHttpRetryPolicy: {attempts: COUNT}",
		"ingressnginx":  "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, annotations: {nginx.ingress.kubernetes.io/proxy-next-upstream-tries: COUNT}}\nspec: {rules: [{http: {paths: [{backend: {service: {name: a}}}]}}]}",
		"gatewayapi":    "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {rules: [{backendRefs: [{name: a}], retry: {attempts: COUNT}}]}",
		"envoygateway":  "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\nspec: {targetRef: {kind: HTTPRoute, name: r}, retry: {numRetries: COUNT}}",
		"linkerd":       "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/http: 5xx, retry.linkerd.io/limit: COUNT}}\nspec: {}",
		"resilience4j":  "resilience4j: {retry: {instances: {a: {maxAttempts: COUNT}}}}",
		"spring":        "spring: {cloud: {gateway: {routes: [{id: a, filters: [{name: Retry, args: {retries: COUNT}}]}]}}}",
		"k8sjob":        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {backoffLimit: COUNT}",
		"argo":          "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {templates: [{name: a, retryStrategy: {limit: COUNT}}]}",
		"stepfunctions": `{"StartAt": "a", "States": {"a": {"Retry": [{"ErrorEquals": ["x"], "MaxAttempts": "COUNT"}]}}}`,
		"aws":           "config:::[default]\nmax_attempts = COUNT\n",
		"nginx":         "n.conf:::upstream a { server 10.0.0.1; server 10.0.0.2; keepalive 0; } server { location / { proxy_next_upstream_tries COUNT; proxy_pass http://a; } }",
		"haproxy":       "h.cfg:::backend a\n retries COUNT\n server s 10.0.0.1:80\n",
	} {
		product, _, _ := strings.Cut(name, "'")
		for count, want := range map[string]string{"$RETRIES": `\d+\+`, "4e18": `\d{4,}\+?|\d+\+`} {
			if name == "nginx" {
				want = "1" // it asks each of its servers once
			}
			got := units(strings.ReplaceAll(file, "COUNT", count))
			if ok, _ := regexp.MatchString(`^`+product+` [^,]* (`+want+`)(,|$)`, got); !ok {
				t.Errorf("%s with %s: got %q", name, count, got)
			}
		}
	}
}
