package foreign

import (
	"strings"
	"testing"
)

// What Kubernetes and its gateways hold together.
func TestGateways(t *testing.T) {
	const (
		route  = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: n}\nspec: {parentRefs: [{name: edge}], rules: [{matches: [{method: GET}], backendRefs: [{name: a}]}]}\n"
		policy = "---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p, namespace: n}\nspec: {targetRefs: [{kind: Gateway, name: edge}], retry: {numRetries: 4}}\n"
		lower  = "---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: q, namespace: n}\nspec: {targetRefs: [{kind: HTTPRoute, name: r}]}\n"
	)
	rule := func(with string) string { return strings.Replace(route, "backendRefs", with+", backendRefs", 1) }
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"a policy of the route hides that of the gateway", route + policy + lower, []string{"edge [n/p n/p] x5", "quiet"}, []string{"a.n ["}},
		{"a policy that is merged does not", route + policy + strings.Replace(lower, "spec: {", "spec: {mergeType: StrategicMerge, ", 1), []string{"a.n ["}, nil},
		{"nothing where a section was", rule("retry: null") + "---\n" + strings.Replace(policy, "{numRetries: 4}", "null", 1), []string{"quiet 1\n"}, []string{" x"}},
		{"a timeout of zero", rule("retry: {attempts: 2}, timeouts: {request: 0s}"), []string{"R-3 total.missing: timeouts.request 0s bounds nothing"}, nil},
		{"no timeout", rule("retry: {attempts: 2}"), []string{"R-3 total.missing: the rule has no timeouts.request"}, nil},
		{"an attempt without one", rule("retry: {attempts: 2}, timeouts: {request: 10s, backendRequest: 0s}"), []string{"attempt 10s, total 10s"}, nil},
		{"retries of another beside Linkerd's words", strings.Replace(rule("retry: {attempts: 50}"), "name: r,", "name: r, annotations: {timeout.linkerd.io/request: 10s},", 1), []string{"x51", "R-2"}, nil},
		{"Linkerd's attempt without a timeout", strings.Replace(route, "name: r,", "name: r, annotations: {retry.linkerd.io/http: 5xx, timeout.linkerd.io/request: 10s, retry.linkerd.io/timeout: 0s},", 1), []string{"x2", "attempt 10s, total 10s"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("r.yaml", tt.text), tt.want, tt.not) })
	}
}

// A dump of a cluster has each resource a second time, as kubectl applied it.
func TestLastApplied(t *testing.T) {
	const dump = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: edge
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "edge"}, "data": {"nginx.conf": "upstream a { server 10.0.0.1; server 10.0.0.2; }\nserver { location / { proxy_pass http://a; } }\n"}}
  data:
    nginx.conf: |
      upstream a { server 10.0.0.1; server 10.0.0.2; server 10.0.0.3; }
      server { location / { proxy_pass http://a; } }
`
	if got := formats("dump.yaml", dump); got != "nginx" {
		t.Errorf("got %q, want the text of the data alone", got)
	}
}
