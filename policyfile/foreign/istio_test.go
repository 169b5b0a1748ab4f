package foreign

import (
	"strings"
	"testing"
)

// istioService is a VirtualService with one route.
func istioService(route string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: payments, namespace: shop}\nspec:\n  hosts: [payments]\n  http:\n  - {" + route + "}\n"
}

const toPayments = "route: [{destination: {host: payments}}]"

// What Istio makes of a route's retries, by the documentation of HTTPRetry.
func TestIstioRetries(t *testing.T) {
	for _, tt := range []struct{ name, route, want string }{
		{"silence", toPayments, "payments: 2 retries of payments.shop.svc;R-3 total.missing;R-6 methods;limit R-5;unjudged payments sets no retries"},
		{"attempts alone", toPayments + ", timeout: 5s, retries: {attempts: 3}", "payments: 3 retries;R-6 methods;-R-3"},
		{"attempts alone, for GET", "match: [{method: {exact: GET}}], " + toPayments + ", timeout: 5s, retries: {attempts: 3}", "payments: 3 retries;-R-6"},
		{"null", toPayments + ", retries: null, timeout: null", "payments: 2 retries;R-3 total.missing;unjudged payments sets no retries"},
		{"empty", toPayments + ", retries: {}", "payments: 0 retries;-R-;unjudged retries without attempts"},
		{"without attempts", toPayments + ", retries: {retryOn: 5xx}", "payments: 0 retries;-R-;unjudged retries without attempts"},
		{"none", toPayments + ", retries: {attempts: 0}", "payments: 0 retries;-R-;-unjudged"},
		{"too many", toPayments + ", retries: {attempts: 9, retryOn: connect-failure}", "payments: 9 retries;R-2 max_retries;-R-6;-limit"},
		{"statuses", toPayments + ", retries: {attempts: 1, retryOn: 'connect-failure, 503, 404'}", "R-4 classify.http_404;R-6 methods"},
		{"the word without a status", toPayments + ", retries: {attempts: 1, retryOn: 'connect-failure,retriable-status-codes'}", "payments: 1 retries;-R-6"},
		{"prefix of a method", "match: [{method: {prefix: GE}}], " + toPayments + ", retries: {attempts: 1, retryOn: 5xx}", "payments: 1 retries;-R-6"},
		{"methods", "match: [{method: {regex: 'GET|HEAD'}}], " + toPayments + ", retries: {attempts: 1, retryOn: 5xx}", "payments: 1 retries;-R-6"},
		{"methods with POST", "match: [{method: {regex: 'GET|POST'}}], " + toPayments + ", retries: {attempts: 1, retryOn: 5xx}", "R-6 methods"},
		{"one match without a method", "match: [{method: {exact: GET}}, {uri: {prefix: /}}], " + toPayments + ", retries: {attempts: 1, retryOn: 5xx}", "R-6 methods"},
		{"a key", "match: [{headers: {idempotency-key: {}}}], " + toPayments + ", retries: {attempts: 1, retryOn: 5xx}", "-R-6"},
		{"headers that the route adds", toPayments + ", headers: {request: {set: {x-envoy-max-retries: '9', x-envoy-retry-on: 5xx}}}, retries: {attempts: 0}", "payments: 0 retries at least;unjudged payments: the route adds the header x-envoy-max-retries"},
		{"every destination", "route: [{destination: {host: payments, subset: v1}, weight: 90}, {destination: {host: ledger.books.svc.cluster.local}, weight: 10}], retries: {attempts: 1, retryOn: connect-failure}", "payments: 1 retries of payments.shop.svc;ledger.books.svc.cluster.local: 1 retries of ledger.books.svc"},
		{"a host elsewhere", "route: [{destination: {host: api.example.com}}], retries: {attempts: 1, retryOn: connect-failure}", "api.example.com: 1 retries;-api.example.com: 1 retries of"},
		{"redirect", "redirect: {uri: /}", "quiet 1;-payments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, judged(t, "v.yaml", istioService(tt.route)), strings.Split(tt.want, ";"))
		})
	}
	two := judged(t, "v.yaml", istioService("route: [{destination: {host: payments, subset: v1}}, {destination: {host: payments, subset: v2}}]"))
	if got := strings.Count(strings.Join(two, "\n"), "R-3"); got != 1 {
		t.Errorf("two subsets are one service, got:\n%s", strings.Join(two, "\n"))
	}
	expect(t, judged(t, "v.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {tcp: [{route: []}], tls: [{route: []}]}\n"), []string{"quiet 2"})
}

// The mesh's own policy holds for the routes that say nothing, wherever it stands.
func TestIstioMeshDefaults(t *testing.T) {
	const policy = "defaultHttpRetryPolicy: {attempts: 7, retryOn: connect-failure}"
	for name, mesh := range map[string]string{
		"operator":  "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nspec: {meshConfig: {" + policy + "}}\n",
		"ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio}\ndata:\n  mesh: |-\n    accessLogFile: /dev/stdout\n    " + policy + "\n",
		"values":    "meshConfig: {" + policy + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, judged(t, "m.yaml", mesh, "v.yaml", istioService(toPayments)), []string{"payments: 7 retries", "every service of the mesh: 7 retries", "R-2 max_retries", "-R-6", "-unjudged payments says nothing"})
			expect(t, judged(t, "m.yaml", mesh, "v.yaml", istioService(toPayments+", retries: {attempts: 1}")), []string{"payments: 1 retries"})
		})
	}
	off := "meshConfig: {defaultHttpRetryPolicy: {attempts: 0}}\n"
	expect(t, judged(t, "m.yaml", off, "v.yaml", istioService(toPayments)), []string{"payments: 0 retries", "quiet 1", "-R-", "-every"})
}

// What a sidecar retries at its own service is a layer below those of its callers.
func TestIstioInbound(t *testing.T) {
	for policy, want := range map[string][]string{
		"{attempts: 2}": {"every service of the mesh: 2 retries", "-R-", "-unjudged"},
		"{}":            {"quiet 1", "-every"},
		"{attempts: 9}": {"R-2 max_retries"},
		"{attempts: 2, retryOn: reset-before-request}": {"every service of the mesh: 2 retries", "-R-6", "-unjudged"},
		"{attempts: 2, retryOn: '5xx'}":                {"R-6 methods", "unjudged a sidecar retries here what its callers also retry"},
		"{attempts: 2, retryOn: connect-failure}":      {"-R-6", "unjudged a sidecar retries here"},
	} {
		expect(t, judged(t, "m.yaml", "meshConfig: {defaultInboundHttpRetryPolicy: "+policy+"}\n"), want)
	}
}

// A DestinationRule is found by its host, as Istio resolves it.
func TestIstioDestinationRules(t *testing.T) {
	const skip, budget = "tls: {mode: SIMPLE, insecureSkipVerify: true}", "retryBudget: {percent: 20, minRetryConcurrency: 3}"
	service := istioService("route: [{destination: {host: payments, subset: v1, port: {number: 443}}}], retries: {attempts: 1, retryOn: connect-failure}")
	for _, tt := range []struct{ name, metadata, spec, want string }{
		{"short name", "{namespace: shop}", "host: payments, trafficPolicy: {" + budget + "}", "-R-7;-unjudged"},
		{"long name", "{namespace: istio-system}", "host: payments.shop.svc.cluster.local, trafficPolicy: {" + budget + "}", "-R-7;-unjudged"},
		{"no namespace", "{}", "host: payments, trafficPolicy: {" + budget + "}", "-R-7;-unjudged"},
		{"wildcard", "{}", "host: '*.shop.svc.cluster.local', trafficPolicy: {" + budget + "}", "-R-7;-unjudged"},
		{"another namespace", "{namespace: books}", "host: payments, trafficPolicy: {" + budget + "}", "unjudged no DestinationRule"},
		{"no traffic policy", "{namespace: shop}", "host: payments", "R-7 budget"},
		{"too much", "{namespace: shop}", "host: payments, trafficPolicy: {retryBudget: {percent: 60}}", "R-7 budget.ratio"},
		{"a floor that is none", "{namespace: shop}", "host: payments, trafficPolicy: {retryBudget: {minRetryConcurrency: 500}}", "R-7 budget.min_retries"},
		{"subset", "{namespace: shop}", "host: payments, subsets: [{name: v1, trafficPolicy: {" + budget + ", " + skip + "}}]", "-R-7;R-9 tls.verify"},
		{"another subset", "{namespace: shop}", "host: payments, trafficPolicy: {" + budget + "}, subsets: [{name: v2, trafficPolicy: {" + skip + "}}]", "-R-7;-R-9"},
		{"port", "{namespace: shop}", "host: payments, trafficPolicy: {" + budget + ", portLevelSettings: [{port: {number: 443}, " + skip + "}]}", "R-9 tls.verify"},
		{"another port", "{namespace: shop}", "host: payments, trafficPolicy: {" + budget + ", portLevelSettings: [{port: {number: 80}, " + skip + "}]}", "-R-9"},
		{"the port outranks all ports", "{namespace: shop}", "host: payments, trafficPolicy: {" + budget + ", " + skip + ", portLevelSettings: [{port: {number: 443}, tls: {mode: SIMPLE}}]}", "-R-9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule := "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: " + tt.metadata + "\nspec: {" + tt.spec + "}\n"
			expect(t, judged(t, "v.yaml", service, "r.yaml", rule), append(strings.Split(tt.want, ";"), "payments: 1 retries"))
		})
	}
}

// A host has its certificates whatever is retried.
func TestIstioRulesAlone(t *testing.T) {
	rule := func(spec string) string {
		return "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: shop}\nspec: {host: payments, " + spec + "}\n"
	}
	const skip = "tls: {mode: SIMPLE, insecureSkipVerify: true}"
	for _, spec := range []string{
		"trafficPolicy: {" + skip + "}", "subsets: [{name: v1, trafficPolicy: {" + skip + "}}]",
		"trafficPolicy: {portLevelSettings: [{port: {number: 443}, " + skip + "}]}",
	} {
		expect(t, judged(t, "r.yaml", rule(spec)), []string{"R-9 tls.verify"})
		expect(t, judged(t, "r.yaml", rule(spec), "v.yaml", istioService(toPayments+", retries: {attempts: 0}")), []string{"R-9 tls.verify"})
	}
	expect(t, judged(t, "r.yaml", rule("trafficPolicy: {tls: {mode: SIMPLE}}")), []string{"-R-9"})
}

// A delegate is not joined with the route above it, and that is said.
func TestIstioDelegates(t *testing.T) {
	const above = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: edge, namespace: shop}\nspec:\n  hosts: [shop.example.com]\n  http: [{delegate: {name: payments}, timeout: 5s, retries: {attempts: 3, retryOn: 5xx}}]\n"
	expect(t, judged(t, "e.yaml", above), []string{"unjudged the VirtualService payments, to which this route delegates"})
}

// A host without a rule is one note, however many routes go to it.
func TestIstioHostWithoutRule(t *testing.T) {
	text := istioService(toPayments+", retries: {attempts: 1, retryOn: connect-failure}") + "  - {" + toPayments + ", retries: {attempts: 2, retryOn: connect-failure}}\n"
	if got := strings.Count(strings.Join(judged(t, "v.yaml", text), "\n"), "no DestinationRule for payments"); got != 1 {
		t.Errorf("%d notes", got)
	}
}
