package foreign

import (
	"strings"
	"testing"
)

// Routes and clusters are found in every form in which Envoy shows and takes them.
func TestEnvoyForms(t *testing.T) {
	const (
		config  = `{"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "a", "retry_policy": {"retry_on": "reset"}}}]}]}`
		cluster = `{"name": "a", "type": "STRICT_DNS", "connect_timeout": "1s", "lb_policy": "RANDOM", "hosts": [{"socket_address": {"address": "a.internal"}}]}`
		camel   = `[{"name": "80", "virtualHosts": [{"name": "v", "domains": ["*"], "routes": [{"route": {"cluster": "outbound|80||a.b.svc.cluster.local", "timeout": "0s", "retryPolicy": {"retryOn": "reset", "numRetries": 7}}}]}]}]`
	)
	typed := `{"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", ` + config[1:]
	for _, tt := range []struct{ name, text, want string }{
		{"dump of static routes", `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "static_route_configs": [{"route_config": ` + typed + `}]}]}`, "a: 1 retries"},
		{"dump of dynamic routes and clusters", `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "dynamic_active_clusters": [{"cluster": ` + cluster + `}]}, {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [{"route_config": ` + config + `}]}]}`, "a: 1 retries of a.internal;R-7 budget"},
		{"dump of listeners", `{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [{"active_state": {"listener": {"filter_chains": [{"filters": [{"typed_config": {"route_config": ` + config + `}}]}]}}}]}]}`, "a: 1 retries"},
		{"routes of istioctl", camel, "outbound|80||a.b.svc.cluster.local: 7 retries of a.b.svc.cluster.local;R-2 max_retries;R-3 total.missing"},
		{"response of xDS", `{"version_info": "1", "resources": [` + typed + `]}`, "a: 1 retries"},
		{"bootstrap", `{"node": {"id": "n"}, "dynamic_resources": {"cds_config": {}}}`, "-a:"},
		{"virtual host of VHDS", `{"@type": "type.googleapis.com/envoy.config.route.v3.VirtualHost", "name": "v", "domains": ["*"], "routes": [{"route": {"cluster": "a", "retry_policy": {"retry_on": "reset"}}}]}`, "a: 1 retries"},
		{"matcher tree", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "matcher": {"on_no_match": {"action": {"typed_config": {"@type": "type.googleapis.com/envoy.config.route.v3.Route", "match": {"prefix": "/"}, "route": {"cluster": "a", "retry_policy": {"retry_on": "reset"}}}}}}}]}`, "a: 1 retries"},
		{"first API", `{"listeners": [{"filters": [{"config": {"route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"prefix": "/", "timeout_ms": 0, "cluster": "a", "retry_policy": {"retry_on": "reset", "num_retries": 8}}]}]}}}]}], "cluster_manager": {"clusters": [{"name": "a", "connect_timeout_ms": 250, "hosts": [{"url": "tcp://a.internal:80"}]}]}}`, "a: 8 retries of a.internal;R-2 max_retries;R-3 total.missing"},
		{"inherited", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "retry_policy": {"retry_on": "reset", "num_retries": 4}, "routes": [{"route": {"cluster": "a"}}, {"route": {"cluster": "b", "retry_policy": {}}}]}]}`, "a: 4 retries;-b:;quiet 1"},
		{"inherited past a null", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "retry_policy": {"retry_on": "reset", "num_retries": 9}, "routes": [{"route": {"cluster": "a", "timeout": null, "retry_policy": null}}]}]}`, "a: 9 retries;R-2 max_retries;-R-3"},
		{"bounded stream", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"route": {"cluster": "a", "timeout": "0s", "max_stream_duration": {"max_stream_duration": "4s"}, "retry_policy": {"retry_on": "reset"}}}]}]}`, "a: 1 retries;-R-3"},
		{"unbounded stream", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"route": {"cluster": "a", "timeout": "0s", "max_stream_duration": {"max_stream_duration": "0s"}, "retry_policy": {"retry_on": "reset"}}}]}]}`, "a: 1 retries;R-3 total.missing"},
		{"hedge", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "hedge_policy": {"hedge_on_per_try_timeout": true}, "routes": [{"route": {"cluster": "a", "retry_policy": {"retry_on": "connect-failure", "per_try_timeout": "1s"}}}]}]}`, "R-6 methods"},
		{"TCP", `{"static_resources": {"listeners": [{"filter_chains": [{"filters": [{"typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "a", "max_connect_attempts": 9}}]}]}], "clusters": [` + cluster + `]}}`, "a: 8 retries of a.internal;R-2 max_retries;limit R-1;limit R-7;-R-3"},
		{"TCP that connects once", `{"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "a", "max_connect_attempts": 1}`, "quiet 1"},
		{"calls of a filter's own", `{"static_resources": {"listeners": [{"filter_chains": [{"filters": [{"http_filters": [{"typed_config": {"grpc_service": {"envoy_grpc": {"cluster_name": "a"}, "retry_policy": {"num_retries": 9}}}}]}]}]}]}}`, "unjudged a retry policy that is no route's"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, judged(t, "e.json", tt.text), strings.Split(tt.want, ";"))
		})
	}
}

// A patch sets what it names, and leaves the rest as Istio has it.
func TestEnvoyFilterPatches(t *testing.T) {
	const head = "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: f}\nspec:\n  workloadSelector: {labels: {app: shop}}\n  configPatches:\n"
	const vhost = "match: {routeConfiguration: {vhost: {name: 'payments.b.svc.cluster.local:80'}}}, "
	for _, tt := range []struct{ name, text, want string }{
		{
			"route", "  - {applyTo: HTTP_ROUTE, " + vhost + "patch: {operation: MERGE, value: {route: {retry_policy: {retry_on: 5xx, num_retries: 9}}}}}\n",
			"payments.b.svc.cluster.local:80: 9 retries;R-2 max_retries;R-6 methods;R-5 retry_after;-R-3;unjudged the patch leaves the route's timeout",
		},
		{"number left alone", "  - {applyTo: HTTP_ROUTE, " + vhost + "patch: {operation: MERGE, value: {route: {retry_policy: {retry_on: reset}}}}}\n", "payments.b.svc.cluster.local:80: 2 retries at least"},
		{"conditions left alone", "  - {applyTo: HTTP_ROUTE, " + vhost + "patch: {operation: MERGE, value: {route: {retry_policy: {num_retries: 4}}}}}\n", "payments.b.svc.cluster.local:80: 4 retries;R-6 methods"},
		{"switched off", "  - {applyTo: HTTP_ROUTE, " + vhost + "patch: {operation: MERGE, value: {route: {retry_policy: {num_retries: 0}}}}}\n", "payments.b.svc.cluster.local:80: 0 retries;-R-"},
		{"virtual host", "  - {applyTo: VIRTUAL_HOST, " + vhost + "patch: {operation: MERGE, value: {retry_policy: {retry_on: reset, num_retries: 3}}}}\n", "payments.b.svc.cluster.local:80: 3 retries"},
		{"a route of its own", "  - {applyTo: HTTP_ROUTE, patch: {operation: INSERT_FIRST, value: {match: {prefix: /}, route: {cluster: a, timeout: 5s, retry_policy: {retry_on: reset}}}}}\n", "a: 1 retries;-unjudged the patch"},
		{"every route of a workload", "  - {applyTo: HTTP_ROUTE, patch: {operation: MERGE, value: {route: {retry_policy: {retry_on: reset, num_retries: 3}}}}}\n", "every route of shop: 3 retries"},
		{"a cluster's budget", "  - {applyTo: CLUSTER, match: {cluster: {service: payments.b.svc.cluster.local}}, patch: {operation: MERGE, value: {circuit_breakers: {thresholds: [{retry_budget: {}}]}}}}\n" +
			"  - {applyTo: VIRTUAL_HOST, " + vhost + "patch: {operation: MERGE, value: {retry_policy: {retry_on: reset, num_retries: 3}}}}\n", "payments.b.svc.cluster.local:80: 3 retries;-R-7;-unjudged cluster"},
		{"whole configuration", "  - {applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {virtual_hosts: [{name: v, domains: ['*'], routes: [{route: {cluster: a, retry_policy: {retry_on: reset}}}]}]}}}\n", "a: 1 retries"},
		{"something else", "  - {applyTo: HTTP_ROUTE, " + vhost + "patch: {operation: MERGE, value: {route: {timeout: 5s}}}}\n", "-payments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, judged(t, "f.yaml", head+tt.text), strings.Split(tt.want, ";"))
		})
	}
	// Nothing says whose routes they are.
	text := strings.Replace(head, "  workloadSelector: {labels: {app: shop}}\n", "", 1) + "  - {applyTo: HTTP_ROUTE, patch: {operation: MERGE, value: {route: {retry_policy: {retry_on: reset, num_retries: 3}}}}}\n"
	expect(t, judged(t, "f.yaml", text), []string{"every route: 3 retries at least"})
}

// Routes to one cluster keep their names when lines move.
func TestEnvoyRouteNames(t *testing.T) {
	text := "name: r\nvirtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /a}, route: {cluster: a, retry_policy: {retry_on: reset}}}, {name: second, match: {path: /b, headers: [{name: ':method', exact_match: GET}]}, route: {cluster: a, retry_policy: {retry_on: reset}}}]}]\n"
	for _, lines := range []string{"", "# moved\n\n"} {
		var got []string
		for _, d := range Read(Open("e.yaml", []byte(lines+text), "").Parts)[0].File.Dependencies {
			got = append(got, d.Route)
		}
		if want := "r v prefix=/a; r v second path=/b headers={{name::method exact_match:GET}}"; strings.Join(got, "; ") != want {
			t.Errorf("got %q, want %q", strings.Join(got, "; "), want)
		}
	}
}

// R-5 is one finding a file, and it has the lines of all the routes.
func TestEnvoyUnheededRoutes(t *testing.T) {
	route := func(policy string) string {
		return "  - {match: {prefix: /}, route: {cluster: a, timeout: 5s, retry_policy: {retry_on: " + policy + "}}}\n"
	}
	const head = "virtual_hosts:\n- name: v\n  domains: ['*']\n  routes:\n"
	const heeded = "5xx, rate_limited_retry_back_off: {reset_headers: [{name: Retry-After}]}"
	for _, tt := range []struct {
		name, text, want string
	}{
		{"one", head + route("5xx") + route(heeded) + route("connect-failure"), "5 R-5 retry_after: Envoy does not heed Retry-After here: no rate_limited_retry_back_off names it\n"},
		{"two", head + route("5xx") + route(heeded) + route("5xx"), "names it (and in line 7)\n"},
		{"many", head + strings.Repeat(route("5xx"), 9), "names it (and in line 6, 7, 8, 9 and 4 more)\n"},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("e.yaml", tt.text), []string{tt.want}, nil) })
	}
}

// What a patch leaves alone is as the VirtualService beside it has it.
func TestEnvoyFilterBesideVirtualService(t *testing.T) {
	const (
		vhost  = "match: {routeConfiguration: {vhost: {name: 'payments.shop.svc.cluster.local:80'NAMED}}}, "
		filter = "---\napiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: f, namespace: shop}\nspec:\n  configPatches:\n  - {applyTo: HTTP_ROUTE, " + vhost + "patch: {operation: MERGE, value: {route: {retry_policy: {PATCH}}}}}\n"
	)
	for _, tt := range []struct{ name, named, retries, patch, want string }{
		{"all of it", "", "timeout: 5s, retries: {attempts: 4, retryOn: connect-failure}", "retry_host_predicate: [], rate_limited_retry_back_off: {reset_headers: [{name: retry-after}]}", "payments.shop.svc.cluster.local:80: 4 retries;-unjudged the patch;-R-6"},
		{"the conditions", "", "timeout: 5s, retries: {attempts: 4, retryOn: connect-failure}", "num_retries: 1", "payments.shop.svc.cluster.local:80: 1 retries;-R-6"},
		{"its own conditions", "", "timeout: 5s, retries: {attempts: 4, retryOn: connect-failure}", "retry_on: reset", "payments.shop.svc.cluster.local:80: 4 retries;R-6 methods"},
		{"of that name", ", route: {name: a}", "name: a, timeout: 5s, retries: {attempts: 4, retryOn: connect-failure}", "num_retries: 1", "-unjudged the patch;-R-6"},
		{"of another name", ", route: {name: b}", "name: a, timeout: 5s, retries: {attempts: 4, retryOn: connect-failure}", "num_retries: 1", "unjudged the patch leaves the route's timeout"},
		{"that says nothing", "", "timeout: 5s", "retry_host_predicate: []", "payments.shop.svc.cluster.local:80: 2 retries at least;unjudged the patch leaves the number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := istioService(toPayments+", "+tt.retries) + strings.NewReplacer("NAMED", tt.named, "PATCH", tt.patch).Replace(filter)
			expect(t, judged(t, "f.yaml", text), strings.Split(tt.want, ";"))
		})
	}
}
