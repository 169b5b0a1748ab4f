package foreign

import (
	"slices"
	"strings"
	"testing"
)

// across is said for several files.
func across(files ...string) string {
	var parts []Part
	for i := 0; i+1 < len(files); i += 2 {
		parts = append(parts, Open(files[i], []byte(files[i+1]), "").Parts...)
	}
	return saidOf(Read(parts))
}

// Copies for several environments lie beside each other in a repository and in a dump.
// Each is judged with what is its own, in whatever order they are given.
func TestCopiesOfEnvironments(t *testing.T) {
	const (
		service = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {http: [{timeout: 9s, retries: {attempts: 1, perTryTimeout: 2s, retryOn: connect-failure}, route: [{destination: {host: b}}]}]}\n"
		rule    = "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: d}\nspec: {host: b, trafficPolicy: {retryBudget: {percent: COUNT}}}\n"
		ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: nginx, defaultBackend: {service: {name: s}}}\n"
		config  = "---\nkind: ConfigMap\ndata: {proxy-next-upstream-tries: 'COUNT', proxy-next-upstream-timeout: '9'}\n"
		haproxy = "global\n  ssl-server-verify COUNT\ndefaults\n  retries 2\n  timeout connect 1s\n  timeout server 2s\nbackend b\n  server b b:443 ssl\n"
	)
	with := func(text, n string) string { return strings.ReplaceAll(text, "COUNT", n) }
	for _, tt := range []struct {
		name, text, calm, bad, want string
	}{
		{"destination rules", service + rule, "20", "90", "R-7 budget.ratio"},
		{"the ConfigMap of ingress-nginx", ingress + config, "2", "50", "R-2 max_retries"},
		{"HAProxy's verification", haproxy, "required", "none", "R-9 tls.verify"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := with(tt.text, tt.calm), with(tt.text, tt.bad)
			if alone := across("bad/a", b); !strings.Contains(alone, tt.want) {
				t.Fatalf("no %q in what is said of one:\n%s", tt.want, alone)
			}
			for _, order := range [][]string{{"calm/a.yaml", a, "bad/a.yaml", b}, {"bad/a.yaml", b, "calm/a.yaml", a}} {
				if tt.text == haproxy {
					order[0], order[2] = strings.Replace(order[0], "yaml", "cfg", 1), strings.Replace(order[2], "yaml", "cfg", 1)
				}
				if got := across(order...); strings.Count(got, tt.want) != 1 {
					t.Errorf("%v: %q stands %d times in\n%s", []string{order[0], order[2]}, tt.want, strings.Count(got, tt.want), got)
				}
			}
		})
	}
}

// Two texts of one dump are two configurations.
func TestCopiesInADump(t *testing.T) {
	envoy := func(thresholds string) string {
		return "    static_resources:\n      listeners: [{filter_chains: [{filters: [{typed_config: {route_config: {virtual_hosts: [{domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: backend, retry_policy: {retry_on: connect-failure}}}]}]}}}]}]}]\n      clusters: [{name: backend, connect_timeout: 1s" + thresholds + "}]\n"
	}
	dump := "kind: List\nitems:\n- kind: ConfigMap\n  data:\n   envoy.yaml: |\n" + envoy(", circuit_breakers: {thresholds: [{retry_budget: {budget_percent: {value: 20}}}]}") +
		"- kind: ConfigMap\n  data:\n   envoy.yaml: |\n" + envoy("")
	holds(t, said("dump.yaml", dump), []string{"R-7 budget: the cluster has no retry_budget"}, []string{"several clusters"})
}

// What cannot be told apart is said.
func TestSeveralOfOneName(t *testing.T) {
	const (
		service = "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: n, annotations: {retry.linkerd.io/http: 5xx, retry.linkerd.io/limit: '50'}}\n"
		profile = "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: s.n.svc.cluster.local}\nspec: {routes: []}\n"
	)
	holds(t, across("pr/s.yaml", service, "st/p.yaml", profile), []string{"these annotations do not apply beside a service profile, such as the one in st/p.yaml:1:1"}, nil)
}

func TestNearness(t *testing.T) {
	at := &Part{Name: "prod/mesh/a.yaml"}
	order := []*Part{{Name: "prod/mesh/a.yaml"}, {Name: "prod/mesh/a.yaml", inner: 1}, {Name: "prod/mesh/b.yaml"}, {Name: "prod/x.yaml"}, {Name: "prod/apps/x.yaml"}, {Name: "x.yaml"}, {Name: "staging/mesh/a.yaml"}}
	var got []int
	for _, p := range order {
		got = append(got, at.nearness(p))
	}
	if !slices.IsSortedFunc(got, func(a, b int) int { return b - a }) || len(slices.Compact(got)) != len(order) {
		t.Errorf("got %v, want each to be further away than the one before it", got)
	}
}
