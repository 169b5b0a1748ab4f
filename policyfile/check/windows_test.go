package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
)

// A window of other software is judged as one of a policy file. Those of Envoy and Istio
// are none: they bound no load.
func TestWindows(t *testing.T) {
	const (
		route   = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: n}\nspec: {rules: [{matches: [{method: GET}], timeouts: {request: 20s, backendRequest: 2s}, retry: {attempts: 3, backoff: 1s}, backendRefs: [{name: a}]}, {matches: [{method: PUT}], timeouts: {request: 20s, backendRequest: 2s}, retry: {attempts: 3, backoff: 1s}, backendRefs: [{name: a}]}]}\n---\napiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nmetadata: {name: b, namespace: n}\nspec: {targetRefs: [{kind: Service, name: a}], retryConstraint: {budget: {BUDGET}, minRetryRate: {count: 10, interval: 30s}}}\n"
		profile = "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a.n.svc.cluster.local}\nspec: {retryBudget: {BUDGET, minRetriesPerSecond: 0}, routes: [{isRetryable: true, timeout: 5s, condition: {method: GET}}]}\n"
		mesh    = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {hosts: [a], http: [{timeout: 12s, route: [{destination: {host: a}}], retries: {attempts: 3, perTryTimeout: 2s, retryOn: connect-failure}}]}\n---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a, trafficPolicy: {retryBudget: {BUDGET}}}\n"
	)
	for _, tt := range []struct{ name, text, budget, want string }{
		{"Gateway API", route, "percent: 20, interval: 30s", "busy 1.25;"},
		{"Gateway API by default", route, "percent: 20", "busy 1.25; FC103 warning a.n counts its budget over 10s instead of 30s"},
		{"Gateway API for long", route, "percent: 20, interval: 10m", "busy 1.25; FC103 warning a.n counts its budget over 10m0s: within 30s retries may be 500% of the requests instead of 20%"},
		{"a long window and a small share", route, "percent: 10, interval: 1m", "busy 1.11;"},
		{"Linkerd", profile, "retryRatio: 0.2, ttl: 30s", "busy 1.2;"},
		{"Linkerd by default", profile, "retryRatio: 0.2", "busy 1.2; FC103 warning a.n.svc.cluster.local counts its budget over 10s instead of 30s"},
		{"Linkerd for a moment", profile, "retryRatio: 0.2, ttl: 1ms", "busy 1.2; FC103 warning a.n.svc.cluster.local counts its budget over 1ms instead of 30s"},
		{"Istio", mesh, "percent: 20", "busy 1.25;"},
		{"Istio's interval", mesh, "percent: 20, budgetInterval: 30s", "busy 4; FC102 warning a: 20% of all requests of 30s may be retries in flight. That does not bound short retries, and even if each lasts 12s they may be 50% of the requests: leave the interval out"},
		{"Istio's shorter interval", mesh, "percent: 20, budgetInterval: 10s", "busy 4; FC102 warning a: 20% of all requests of 10s may be retries in flight. That is over 20% of the requests if a retry lasts less than 10s: leave the interval out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Run(readText("a.yaml", strings.Replace(tt.text, "BUDGET", tt.budget, 1)).Sources, Options{})
			words := []string{fmt.Sprintf("busy %s;", number(got.Loads[0].Busy))}
			for _, f := range got.Findings {
				if f.Severity > report.Note {
					words = append(words, fmt.Sprint(f.ID, " ", f.Severity, " ", f.Message))
				}
			}
			if text := strings.Join(words, " "); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

// A bound that follows from attempts and waits is one, up to what a total may be.
func TestComputedBounds(t *testing.T) {
	const service = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {hosts: [a], http: [{match: [{method: {exact: GET}}], route: [{destination: {host: a}}], retries: {attempts: 2, PER retryOn: connect-failure}}]}\n"
	const haproxy = "defaults\n mode http\n retries 3\n timeout connect TIME\n timeout server 5s\nbackend a\n server a 10.0.0.1:80\n"
	const envoy = "virtual_hosts: [{name: v, domains: ['*'], request_headers_to_remove: [x-envoy-max-retries], routes: [{match: {prefix: /}, route: {cluster: a, timeout: 0s, retry_policy: {PER: 1s, retry_on: connect-failure, num_retries: 2}}}]}]\n"
	for _, tt := range []struct{ name, file, text, want string }{
		{"short tries", "a.yaml", strings.Replace(service, "PER", "perTryTimeout: 20ms,", 1), "a 3 135ms; FC001"},
		{"long tries", "a.yaml", strings.Replace(service, "PER", "perTryTimeout: 20s,", 1), "a 3 1m0.075s; FC001 FC209"},
		{"tries without an end", "a.yaml", strings.Replace(service, "PER", "", 1), "a 3 unbounded; FC001 FC209"},
		{"Envoy's tries", "a.yaml", strings.Replace(envoy, "PER", "per_try_timeout", 1), "a 3 3.075s; FC001"},
		{"Envoy's waits for as long as it is told", "a.yaml", strings.Replace(strings.Replace(envoy, "PER", "per_try_timeout", 1), "retry_on: connect-failure", "retry_on: connect-failure, retriable_status_codes: [503], rate_limited_retry_back_off: {reset_headers: [{name: Retry-After, format: SECONDS}]}", 1), "a 3 3.075s; FC001"},
		{"Envoy's waits after a response", "a.yaml", strings.Replace(strings.Replace(envoy, "PER", "per_try_timeout", 1), "retry_on: connect-failure", "retry_on: retriable-status-codes, retriable_status_codes: [503], rate_limited_retry_back_off: {reset_headers: [{name: Retry-After, format: SECONDS}]}", 1), "a 3 >= 3.075s; FC001 FC209 FC301"},
		{"the waits of a gateway", "a.yaml", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {rules: [{matches: [{method: GET}], backendRefs: [{name: a}], timeouts: {backendRequest: 3s}, retry: {attempts: 2, backoff: 100ms}}]}\n", "a 3 >= 9.2s; FC209"},
		{"Envoy's silence", "a.yaml", strings.Replace(envoy, "PER", "per_try_idle_timeout", 1), "a 3 unbounded; FC001 FC209"},
		{"nginx's silence", "a.conf", "upstream a { server 10.0.0.1; server 10.0.0.2; keepalive 0; }\nserver { proxy_read_timeout 2s; location / { proxy_pass http://a; } }\n", "a 2 4s; FC209"},
		{"HAProxy", "a.cfg", strings.Replace(haproxy, "TIME", "1s", 1), "a 4 12s; "},
		{"HAProxy for long", "a.cfg", strings.Replace(haproxy, "TIME", "10s", 1), "a 4 48s; FC202"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := verdict(readText(tt.file, tt.text)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Istio's default conditions depend on its version, which a label may tell.
func TestIstioVersions(t *testing.T) {
	const service = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, labels: {istio.io/rev: REV}}\nspec: {hosts: [a], http: [{timeout: 9s, route: [{destination: {host: a}}], retries: {attempts: 2, perTryTimeout: 1s}}]}\n"
	for revision, want := range map[string]report.Severity{"1-23-4": report.Error, "1-24-0": report.Warning, "''": report.Warning, "canary": report.Warning, "1-9": report.Error, "2-1": report.Warning} {
		found := false
		for _, f := range Run(readText("a.yaml", strings.Replace(service, "REV", revision, 1)).Sources, Options{}).Findings {
			if f.ID == "FC301" {
				found = true
				if f.Severity != want {
					t.Errorf("%s: got %s, want %s", revision, f.Severity, want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no FC301", revision)
		}
	}
}

// No finding lacks a name, whatever the file leaves out.
func TestNames(t *testing.T) {
	for _, text := range []string{
		"apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p}\nspec: {targetSelectors: [{kind: Gateway}], retry: {}, timeout: {http: {requestTimeout: 0s}}}\n",
	} {
		named(t, Run(readText("a.yaml", text).Sources, Options{}))
	}
}

// named checks that what is said has its names.
func named(t *testing.T, r *Result) {
	t.Helper()
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Message, ":") || strings.Contains(f.Message, "  ") || strings.Contains(f.Message, " : ") {
			t.Errorf("a name is empty: %q", f.Message)
		}
	}
	for _, l := range r.Loads {
		if strings.TrimSpace(l.Dependency) == "" || strings.TrimSpace(l.Service) == "" {
			t.Errorf("a row without a name: %+v", l)
		}
	}
}
