package foreign

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// judged reads files, in pairs of a name and a text, and returns what is found: a line
// for each broken rule, unit, limit and note, without the places.
func judged(t *testing.T, files ...string) (lines []string) {
	t.Helper()
	var parts []Part
	for i := 0; i < len(files); i += 2 {
		opened := Open(files[i], []byte(files[i+1]), "")
		if len(opened.Faults) > 0 || len(opened.Parts) == 0 {
			t.Fatalf("%s: %d parts, %v", files[i], len(opened.Parts), opened.Faults)
		}
		parts = append(parts, opened.Parts...)
	}
	for _, result := range Read(parts) {
		f := result.File
		for _, d := range f.Dependencies {
			lines = append(lines, unit(&d))
		}
		for _, fault := range result.Refused {
			lines = append(lines, fmt.Sprintf("%s %s", fault.Rule, fault.Field))
		}
		for _, fault := range f.Limits {
			lines = append(lines, "limit "+fault.Rule)
		}
		for _, fault := range f.Unjudged {
			lines = append(lines, "unjudged "+fault.Message)
		}
		if f.Quiet > 0 {
			lines = append(lines, fmt.Sprintf("quiet %d", f.Quiet))
		}
	}
	return lines
}

func unit(d *policyfile.Dependency) string {
	line := fmt.Sprintf("%s: %d retries", d.Name, max(d.Policy.Retries(), 0))
	if d.AtLeast {
		line += " at least"
	}
	if d.Service != "" {
		line += " of " + d.Service
	}
	return line
}

// says reports whether a line with that beginning was found.
func says(lines []string, beginning string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, beginning) {
			return true
		}
	}
	return false
}

// expect compares what is found with what must be there; "-" before a line means that
// it must not.
func expect(t *testing.T, lines, want []string) {
	t.Helper()
	for _, w := range want {
		not, found := strings.CutPrefix(w, "-")
		if found == says(lines, not) {
			t.Errorf("want %q in:\n%s", w, strings.Join(lines, "\n"))
		}
	}
}

// envoyRouteFile is a route configuration with one route and its cluster.
func envoyRouteFile(match, action string) string {
	return "virtual_hosts:\n- name: v\n  domains: ['*']\n  routes:\n  - match: " + match + "\n    route: {cluster: payments, timeout: 10s, " + action + "}\n"
}

const anyPath = "{prefix: /}"

// What makes a route retry, and what of it the service may have seen.
func TestEnvoyConditions(t *testing.T) {
	for _, tt := range []struct{ name, policy, want string }{
		{"5xx", "retry_on: 5xx", "payments: 1 retries|R-6 methods|R-5 retry_after"},
		{"gateway-error", "retry_on: gateway-error", "R-6 methods|R-5 retry_after"},
		{"reset", "retry_on: reset", "payments: 1 retries|R-6 methods|-R-5"},
		{"nothing was sent", "retry_on: 'connect-failure, refused-stream,reset-before-request'", "payments: 1 retries|-R-6|-R-5"},
		{"a limiter's response", "retry_on: envoy-ratelimited", "payments: 1 retries|-R-6|R-5 retry_after"},
		{"after the connection", "retry_on: http3-post-connect-failure", "R-6 methods|-R-5"},
		{"gRPC", "retry_on: 'cancelled,deadline-exceeded,internal,resource-exhausted,unavailable'", "R-6 methods|R-5 retry_after"},
		{"conflict", "retry_on: retriable-4xx", "R-4 classify.http_409"},
		{"codes with their word", "retry_on: retriable-status-codes, retriable_status_codes: [503, 404]", "payments: 1 retries|R-4 classify.http_404|R-6 methods"},
		{"codes without their word", "retry_on: connect-failure, retriable_status_codes: [503, 404]", "payments: 1 retries|-R-4|-R-6"},
		{"the word without codes", "retry_on: retriable-status-codes", "quiet 1|-payments"},
		{"headers without their word", "retry_on: connect-failure, retriable_headers: [{name: x-again}]", "payments: 1 retries|-R-6"},
		{"headers with their word", "retry_on: retriable-headers, retriable_headers: [{name: ':status', exact_match: '404'}]", "R-4 classify.http_404|R-6 methods"},
		{"the word without headers", "retry_on: retriable-headers", "quiet 1|-payments"},
		{"a status is no word of Envoy's", "retry_on: '503'", "quiet 1|-payments"},
		{"no policy", "", "quiet 1|-payments"},
		{"none", "retry_on: '5xx,retriable-4xx', num_retries: 0", "payments: 0 retries|-R-"},
		{"an absurd number", "retry_on: connect-failure, num_retries: 99999999999", "R-2 max_retries"},
		{"methods of the request", "retry_on: 5xx, retriable_request_headers: [{name: ':method', string_match: {safe_regex: {regex: 'GET|HEAD'}}}]", "payments: 1 retries|-R-6"},
		{"one of the headers is enough", "retry_on: 5xx, retriable_request_headers: [{name: ':method', exact_match: GET}, {name: x-again}]", "R-6 methods"},
		{"a key of the request", "retry_on: 5xx, retriable_request_headers: [{name: idempotency-key, present_match: true}]", "-R-6"},
		{"Retry-After", "retry_on: 5xx, rate_limited_retry_back_off: {reset_headers: [{name: retry-after}]}", "payments: 1 retries|-R-5"},
		{"another header", "retry_on: 5xx, rate_limited_retry_back_off: {reset_headers: [{name: x-ratelimit-reset}]}", "R-5 retry_after"},
		{"Retry-After that is cut off", "retry_on: 5xx, rate_limited_retry_back_off: {max_interval: 2s, reset_headers: [{name: Retry-After}]}", "R-5 retry_after"},
		{"typed", "'@type': type.googleapis.com/envoy.config.route.v3.RetryPolicy, retry_on: reset", "payments: 1 retries"},
		{"extension", "'@type': type.googleapis.com/our.Policy", "payments: 1 retries at least|unjudged an extension"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := "retry_policy"
			if strings.HasPrefix(tt.policy, "'@type'") {
				key = "retry_policy_typed_config"
			}
			expect(t, judged(t, "e.yaml", envoyRouteFile(anyPath, key+": {"+tt.policy+"}")), strings.Split(tt.want, "|"))
		})
	}
}

// A route that no POST and no PATCH matches may repeat what it likes.
func TestEnvoyMethods(t *testing.T) {
	for match, safe := range map[string]bool{
		"{name: ':method', exact_match: GET}":                                                                                 true,
		"{name: ':method', exact_match: POST}":                                                                                false,
		"{name: ':method', string_match: {exact: get, ignore_case: true}}":                                                    true,
		"{name: ':method', string_match: {exact: post, ignore_case: true}}":                                                   false,
		"{name: ':method', string_match: {safe_regex: {regex: 'GET|HEAD'}}}":                                                  true,
		"{name: ':method', safe_regex_match: {google_re2: {}, regex: 'GET|POST'}}":                                            false,
		"{name: ':method', regex_match: 'P(UT|ATCH)'}":                                                                        false,
		"{name: ':method', regex_match: '['}":                                                                                 false,
		"{name: ':method', prefix_match: P}":                                                                                  false,
		"{name: ':method', string_match: {prefix: GE}}":                                                                       true,
		"{name: ':method', exact_match: POST, invert_match: true}":                                                            false,
		"{name: ':method', string_match: {safe_regex: {regex: 'POST|PATCH'}}, invert_match: true}":                            true,
		"{name: ':method', exact_match: POST, invert_match: true}, {name: ':method', exact_match: PATCH, invert_match: true}": true,
		"{name: ':method', present_match: true}":                                                                              false,
		"{name: ':method'}":                                                                                                   false,
		"{name: ':method', range_match: {start: 1, end: 2}}":                                                                  false,
		"{name: ':method', value: 'GET|HEAD', regex: true}":                                                                   true,
		"{name: x-read-only, exact_match: GET}":                                                                               false,
		"{name: Idempotency-Key, present_match: true}":                                                                        true,
		"{name: Idempotency-Key}":                                                                                             true,
		"{name: Idempotency-Key, present_match: false}":                                                                       false,
		"{name: Idempotency-Key, present_match: true, invert_match: true}":                                                    false,
	} {
		lines := judged(t, "e.yaml", envoyRouteFile("{prefix: /, headers: ["+match+"]}", "retry_policy: {retry_on: 5xx}"))
		if got := !says(lines, "R-6"); got != safe {
			t.Errorf("%s: safe is %v, want %v", match, got, safe)
		}
	}
}

// A route that adds the headers by which requests ask Envoy for retries is not counted.
func TestEnvoyAddedHeaders(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"route", "routes: [{request_headers_to_add: [{header: {key: X-Envoy-Retry-On, value: 5xx}}], route: {cluster: a}}]", "a: 1 retries at least|unjudged a: the route adds the header X-Envoy-Retry-On"},
		{"over the policy", "request_headers_to_add: [{header: {key: x-envoy-max-retries, value: '9'}}], routes: [{route: {cluster: a, retry_policy: {retry_on: reset}}}]", "a: 1 retries at least|R-6 methods"},
		{"one weighted cluster", "routes: [{route: {weighted_clusters: {clusters: [{name: a, weight: 1, request_headers_to_add: [{header: {key: x-envoy-retry-on, value: 5xx}}]}, {name: b, weight: 2}]}}}]", "a: 1 retries at least|quiet 1|-b:"},
		{"callers may ask for more", "routes: [{route: {cluster: a, retry_policy: {retry_on: reset}}}]", "unjudged callers that Envoy considers internal"},
		{"callers may not", "request_headers_to_remove: [X-Envoy-Max-Retries], routes: [{route: {cluster: a, retry_policy: {retry_on: reset}}}]", "a: 1|-unjudged callers that"},
		{"another header", "request_headers_to_add: [{header: {key: x-envoy-upstream-rq-timeout-ms, value: '9'}}], routes: [{route: {cluster: a}}]", "quiet 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, judged(t, "e.yaml", "virtual_hosts: [{name: v, domains: ['*'], "+tt.text+"}]\n"), strings.Split(tt.want, "|"))
		})
	}
}

// Every cluster that a route may go to is a dependency, with its own budget and TLS.
func TestEnvoyClusters(t *testing.T) {
	const policy = "retry_policy: {retry_on: connect-failure}"
	route := func(to string) string {
		return "static_resources:\n  listeners: [{filter_chains: [{filters: [{typed_config: {route_config: {virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {" + to + ", " + policy + "}}]}]}}}]}]}]\n  clusters:\n"
	}
	tls := func(field, context string) string {
		return route("cluster: a") + "  - {name: a, connect_timeout: 1s, " + field + ": " + context + "}\n"
	}
	const v3, v2 = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "type.googleapis.com/envoy.api.v2.auth.UpstreamTlsContext"
	socket := func(kind, common string) string {
		return tls("transport_socket", "{name: envoy.transport_sockets.tls, typed_config: {'@type': "+kind+", common_tls_context: {"+common+"}}}")
	}
	for _, tt := range []struct{ name, text, want string }{
		{"weighted", route("weighted_clusters: {clusters: [{name: a, weight: 90}, {name: b, weight: 10}]}") + "  - {name: a, connect_timeout: 1s, circuit_breakers: {thresholds: [{retry_budget: {}}]}}\n", "a: 1|b: 1|-R-7|unjudged cluster b is not"},
		{"by a header", route("cluster_header: x-to") + "  - {name: a, connect_timeout: 1s}\n", "unnamed: 1 retries at least"},
		{"number of retries", tls("circuit_breakers", "{thresholds: [{max_retries: 3}]}"), "R-7 budget"},
		{"budget of another priority", tls("circuit_breakers", "{thresholds: [{priority: HIGH, retry_budget: {}}]}"), "R-7 budget"},
		{"budget by default", tls("circuit_breakers", "{thresholds: [{retry_budget: {}}]}"), "a: 1|-R-7"},
		{"budget over the share", tls("circuit_breakers", "{thresholds: [{retry_budget: {budget_percent: {value: 50}}}]}"), "R-7 budget.ratio"},
		{"a share that is not known", tls("circuit_breakers", "{thresholds: [{retry_budget: {budget_percent: {value: $P}}}]}"), "unjudged a: \"$P\" is not a number"},
		{"a floor that is none", tls("circuit_breakers", "{thresholds: [{retry_budget: {min_retry_concurrency: 1000}}]}"), "R-7 budget.min_retries"},
		{"v3 without a CA", socket(v3, "validation_context: {}"), "R-9 tls.verify"},
		{"v3 with a CA", socket(v3, "validation_context: {trusted_ca: {filename: /ca}}"), "-R-9"},
		{"v3 with a secret", socket(v3, "validation_context_sds_secret_config: {name: ca}"), "-R-9"},
		{"v3 combined", socket(v3, "combined_validation_context: {default_validation_context: {}, validation_context_sds_secret_config: {name: ca}}"), "-R-9"},
		{"v3 combined that accepts all", socket(v3, "combined_validation_context: {default_validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}, validation_context_sds_secret_config: {name: ca}}"), "R-9 tls.verify"},
		{"expired", socket(v3, "validation_context: {trusted_ca: {filename: /ca}, allow_expired_certificate: true}"), "R-9 tls.verify"},
		{"v2", socket(v2, ""), "R-9 tls.verify"},
		{"without retries", strings.ReplaceAll(socket(v3, ""), policy, "timeout: 1s"), "R-9 tls.verify|quiet 1"},
		{"of no route", route("cluster: b") + "  - {name: a, connect_timeout: 1s, transport_socket: {typed_config: {'@type': " + v3 + "}}}\n", "R-9 tls.verify"},
		{"by labels", tls("transport_socket_matches", "[{name: m, transport_socket: {name: t, typed_config: {'@type': "+v3+"}}}]"), "R-9 tls.verify"},
		{"host behind it", tls("load_assignment", "{endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: payments.internal, port_value: 1}}}}]}]}"), "a: 1 retries of payments.internal"},
		{"deprecated hosts", tls("hosts", "[{socket_address: {address: payments, port_value: 1}}]"), "a: 1 retries of payments"},
		{"an address says nothing", tls("hosts", "[{socket_address: {address: 127.0.0.1, port_value: 1}}]"), "a: 1 retries|-a: 1 retries of"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, judged(t, "e.yaml", tt.text), strings.Split(tt.want, "|"))
		})
	}
	// One cluster is one finding, whatever its routes.
	text := "virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /a}, route: {cluster: a, " + policy + "}}, {match: {prefix: /b}, route: {cluster: a, " + policy + "}}]}]\n---\nname: a\nload_assignment: {}\n"
	lines := judged(t, "e.yaml", text)
	if got := strings.Count(strings.Join(lines, "\n"), "R-7"); got != 1 {
		t.Errorf("%d findings about the budget of one cluster:\n%s", got, strings.Join(lines, "\n"))
	}
}

// A certificate that is refused is a failed connection to Envoy, which it retries with
// those.
func TestEnvoyHandshakes(t *testing.T) {
	const text = "virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: a, retry_policy: {retry_on: ON, retriable_status_codes: [503]}}}]}]\n---\nname: a\nload_assignment: {}\ntransport_socket: {typed_config: {common_tls_context: {validation_context: {CONTEXT}}}}\n"
	const ca = "trusted_ca: {filename: /ca}"
	for _, tt := range []struct {
		on, context string
		noted       bool
	}{
		{"connect-failure", ca, true},
		{"5xx", ca, true},
		{"retriable-status-codes", ca, false},
		{"connect-failure", "", false}, // none is refused
	} {
		got := said("e.yaml", strings.NewReplacer("ON", tt.on, "CONTEXT", tt.context).Replace(text))
		if strings.Contains(got, "cannot R-9") != tt.noted {
			t.Errorf("%s with %q: got %s", tt.on, tt.context, got)
		}
	}
}

// A cluster's share is one finding, however many routes go to it.
func TestEnvoyShareOfOneCluster(t *testing.T) {
	text := "virtual_hosts: [{name: v, domains: ['*'], retry_policy: {retry_on: connect-failure}, routes: [{match: {prefix: /a}, route: {cluster: a}}, {match: {prefix: /b}, route: {cluster: a}}]}]\n" +
		"clusters: [{name: a, circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 40}}}]}}]\n"
	if got := strings.Count(strings.Join(judged(t, "e.yaml", text), "\n"), "R-7 budget.ratio"); got != 1 {
		t.Errorf("%d findings", got)
	}
}
