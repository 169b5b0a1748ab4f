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
	constraint := func(text string) string {
		return "---\napiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nmetadata: {name: b, namespace: n}\nspec: {targetRefs: [{kind: Service, name: a}], retryConstraint: " + text + "}\n"
	}
	rule := func(with string) string { return strings.Replace(route, "backendRefs", with+", backendRefs", 1) }
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"a policy of the route hides that of the gateway", route + policy + lower, []string{"edge [n/p n/p] x5", "quiet"}, []string{"a.n ["}},
		{"a policy that is merged does not", route + policy + strings.Replace(lower, "spec: {", "spec: {mergeType: StrategicMerge, ", 1), []string{"a.n ["}, nil},
		{"nothing where a section was", rule("retry: null") + "---\n" + strings.Replace(policy, "{numRetries: 4}", "null", 1), []string{"quiet 1\n"}, []string{" x"}},
		{"a gateway without a route", strings.ReplaceAll(policy, "---\n", ""), []string{"note 4: no route that p applies to through Gateway edge is in these files: its methods (and whether writes are retried, R-6) and its backends are not judged"}, []string{"which methods"}},
		{"a route that is not there", strings.Replace(policy, "Gateway, name: edge", "HTTPRoute, name: other", 1), []string{"note 5: HTTPRoute other is not in these files: its methods (and whether writes are retried, R-6) and its backends are not judged"}, []string{"which methods"}},
		{"the floor of a budget, by default", rule("retry: {attempts: 2}") + constraint("{budget: {percent: 20}}"), []string{"9 R-7 budget.min_retries: minRetryRate is 10 in 1s, the default: up to 300 retries in 30s are allowed whatever the share, where the standard allows 10: set {count: 10, interval: 30s}", "cannot R-7 : what the share of an XBackendTrafficPolicy bounds depends on the implementation"}, []string{"cannot R-7 budget"}},
		{"the floor of a budget", rule("retry: {attempts: 2}") + constraint("{minRetryRate: {count: 10, interval: 30s}}"), []string{"a.n [n/r"}, []string{"R-7 budget"}},
		{"a high floor", rule("retry: {attempts: 2}") + constraint("{minRetryRate: {count: 30, interval: 1m}}"), []string{"R-7 budget.min_retries: minRetryRate is 30 in 1m: up to 15 retries in 30s"}, nil},
		{"a floor that cannot be read", rule("retry: {attempts: 2}") + constraint("{minRetryRate: {count: $N}}"), []string{"note 9: a.n: minRetryRate cannot be read, so what it allows is unknown"}, []string{"budget.min_retries"}},
		{"a slip in a budget", rule("retry: {attempts: 2}") + constraint("{budget: {percent: 20, intervall: 30s}, minRetryRate: {count: 10, interval: 30s}}"), []string{"note 9: a.n: intervall is not in the API, and is not read: did you mean interval?"}, nil},
		{"a window that the API refuses", rule("retry: {attempts: 2}") + constraint("{budget: {interval: 1ms}, minRetryRate: {count: 10, interval: 30s}}"), []string{"note 9: a.n: the API refuses an interval of 1ms: want 1s to 1h"}, nil},
		{"a filter of another product", rule("filters: [{type: ExtensionRef, extensionRef: {group: consul.hashicorp.com, kind: RouteRetryFilter, name: many}}]"), []string{"note 4: RouteRetryFilter many decides on this rule's retries, and is not judged"}, nil},
		{"a filter of a backend", strings.Replace(route, "{name: a}", "{name: a, filters: [{type: ExtensionRef, extensionRef: {kind: RetryPolicy, name: b}}]}", 1), []string{"RetryPolicy b decides on this rule's retries"}, nil},
		{"a filter that does something else", rule("filters: [{type: ExtensionRef, extensionRef: {kind: Middleware, name: m}}]"), nil, []string{"decides on the retries"}},
		{"targets by their labels alone", strings.ReplaceAll(strings.Replace(policy, "targetRefs: [{kind: Gateway, name: edge}]", "targetSelectors: [{kind: HTTPRoute, matchExpressions: [{key: team, operator: In, values: [pay]}]}], timeout: {http: {requestTimeout: 0s}}", 1), "---\n", ""), []string{"key=team operator=In", "values= pay [n/p n/p]"}, []string{"\n [", "total.missing: :"}},
		{"targets of a kind", strings.ReplaceAll(strings.Replace(policy, "targetRefs: [{kind: Gateway, name: edge}]", "targetSelectors: [{kind: Gateway}]", 1), "---\n", ""), []string{"* [n/p n/p]", "through Gateway * is in"}, nil},
		{"a slip in a key", route + strings.Replace(policy, "numRetries: 4", "numRetries: 4, perRetry: {backoff: {}}", 1), []string{"backoff is not in the API, and is not read: did you mean backOff?"}, nil},
		{"a timeout of zero", rule("retry: {attempts: 2}, timeouts: {request: 0s}"), []string{"R-3 total.missing: timeouts.request 0s bounds nothing"}, nil},
		{"no timeout", rule("retry: {attempts: 2}"), []string{"R-3 total.missing: the rule has no timeouts.request"}, nil},
		{"an attempt without one", rule("retry: {attempts: 2}, timeouts: {request: 10s, backendRequest: 0s}"), []string{"attempt 10s, total 10s"}, nil},
		{"retries of another beside Linkerd's words", strings.Replace(rule("retry: {attempts: 50}"), "name: r,", "name: r, annotations: {timeout.linkerd.io/request: 10s},", 1), []string{"x51", "R-2"}, nil},
		{"Linkerd's attempt without a timeout", strings.Replace(route, "name: r,", "name: r, annotations: {retry.linkerd.io/http: 5xx, timeout.linkerd.io/request: 10s, retry.linkerd.io/timeout: 0s},", 1), []string{"x2", "attempt 10s, total 10s"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("r.yaml", tt.text), tt.want, tt.not) })
	}
}

// A service profile names the methods of gRPC, and is found by the name of its service.
func TestServiceProfiles(t *testing.T) {
	profile := func(name, method, budget string) string {
		return "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: " + name + "}\nspec:\n  routes: [{name: a, isRetryable: true, condition: {method: POST, pathRegex: '/shop\\.v1\\.Orders/" + method + "'}}]\n" + budget
	}
	const host = "orders.shop.svc.cluster.local"
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"a method that reads", profile(host, "ReadOrder", ""), []string{host + " [a] x4 at least"}, []string{"R-6", "(R-6)"}},
		{"a method that writes", profile(host, "CreateOrder", ""), []string{"5 R-6 methods: a method that writes is retried"}, nil},
		{"a method that does not tell", profile(host, "Vote", ""), []string{"note 5: " + host + ": the name Vote does not show whether the method writes"}, nil},
		{"the default of the budget", profile(host, "ReadOrder", ""), []string{"R-7 budget.min_retries: minRetriesPerSecond is 10, the default: up to 300 retries in 30s are allowed whatever the share, where the standard allows 10: set 0"}, nil},
		{"a budget", profile(host, "ReadOrder", "  retryBudget: {retryRatio: 0.1, minRetriesPerSecond: 2, ttl: 10s}\n"), []string{"6 R-7 budget.min_retries: minRetriesPerSecond is 2: up to 60 retries"}, nil},
		{"no host", profile("orders", "ReadOrder", ""), []string{"orders [a] x4 at least", "note 3: Linkerd finds a profile by the full host name of a service, orders.NAMESPACE.svc.cluster.local, not by orders"}, nil},
		{"no host, and no retries", strings.Replace(profile("orders", "ReadOrder", ""), "isRetryable: true, ", "", 1), []string{"quiet 1\n"}, []string{"note"}},
		{"a host", profile(host, "ReadOrder", ""), nil, []string{"Linkerd finds a profile"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("p.yaml", tt.text), tt.want, tt.not) })
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

// A GRPCRoute has no retries, whatever its file says.
func TestGRPCRouteRetries(t *testing.T) {
	const route = "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: r}\nspec:\n  rules: [{backendRefs: [{name: a}], retry: {attempts: 9}}]\n"
	expect(t, judged(t, "r.yaml", route), []string{"quiet 1", "unjudged a: a GRPCRoute has no retry", "-R-"})
}
