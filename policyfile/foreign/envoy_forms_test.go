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
		{"inherited", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "retry_policy": {"retry_on": "reset", "num_retries": 4}, "routes": [{"route": {"cluster": "a"}}, {"route": {"cluster": "b", "retry_policy": {}}}]}]}`, "a: 4 retries;-b:;quiet 1"},
		{"inherited past a null", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "retry_policy": {"retry_on": "reset", "num_retries": 9}, "routes": [{"route": {"cluster": "a", "timeout": null, "retry_policy": null}}]}]}`, "a: 9 retries;R-2 max_retries;-R-3"},
		{"bounded stream", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"route": {"cluster": "a", "timeout": "0s", "max_stream_duration": {"max_stream_duration": "4s"}, "retry_policy": {"retry_on": "reset"}}}]}]}`, "a: 1 retries;-R-3"},
		{"unbounded stream", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"route": {"cluster": "a", "timeout": "0s", "max_stream_duration": {"max_stream_duration": "0s"}, "retry_policy": {"retry_on": "reset"}}}]}]}`, "a: 1 retries;R-3 total.missing"},
		{"hedge", `{"virtual_hosts": [{"name": "v", "domains": ["*"], "hedge_policy": {"hedge_on_per_try_timeout": true}, "routes": [{"route": {"cluster": "a", "retry_policy": {"retry_on": "connect-failure", "per_try_timeout": "1s"}}}]}]}`, "R-6 methods"},
		{"TCP", `{"static_resources": {"listeners": [{"filter_chains": [{"filters": [{"typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "a", "max_connect_attempts": 9}}]}]}], "clusters": [` + cluster + `]}}`, "unjudged the connection attempts of a TCP proxy"},
		{"calls of a filter's own", `{"static_resources": {"listeners": [{"filter_chains": [{"filters": [{"http_filters": [{"typed_config": {"grpc_service": {"envoy_grpc": {"cluster_name": "a"}, "retry_policy": {"num_retries": 9}}}}]}]}]}]}}`, "unjudged a retry policy that belongs to no route"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, judged(t, "e.json", tt.text), strings.Split(tt.want, ";"))
		})
	}
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
		{"one", head + route("5xx") + route(heeded) + route("connect-failure"), "5 R-5 retry_after: Envoy ignores Retry-After here: name it in rate_limited_retry_back_off\n"},
		{"two", head + route("5xx") + route(heeded) + route("5xx"), "name it in rate_limited_retry_back_off (and in line 7)\n"},
		{"many", head + strings.Repeat(route("5xx"), 9), "name it in rate_limited_retry_back_off (and in line 6, 7, 8, 9 and 4 more)\n"},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("e.yaml", tt.text), []string{tt.want}, nil) })
	}
}
