package check

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/report"
)

const (
	caller    = "service: checkout\ndependencies:\n  payments: {owner: checkout, strict: true, methods: [GET], max_retries: 3, SERVICE}\n"
	mesh      = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: p, namespace: NS}\nspec:\n  http:\n  - name: all\n    timeout: 10s\n    retries: {attempts: 2, perTryTimeout: 2s, retryOn: connect-failure}\n    route: [{destination: {host: HOST}}]\n"
	nginxEdge = "upstream payments { server 10.0.0.1; server 10.0.0.2; }\nserver { proxy_next_upstream_timeout 10s; proxy_read_timeout 2s; location / { proxy_pass http://payments; } }\n"
)

// layered reads files that stand for layers, by their names.
func layered(t *testing.T, files ...string) *Result {
	t.Helper()
	var inputs []Input
	for i := 0; i+1 < len(files); i += 2 {
		inputs = append(inputs, Input{Name: files[i], Data: []byte(files[i+1])})
	}
	read := ReadAll(inputs)
	if err := read.Err(); err != nil {
		t.Fatal(err)
	}
	return Run(read.Sources, Options{Now: today})
}

// All who retry one dependency are found, under whatever name they know it.
func TestLayers(t *testing.T) {
	plain := strings.Replace(caller, ", SERVICE", "", 1)
	const (
		kube    = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: NAME, namespace: shop}\nspec:\n  rules: [{timeouts: {request: 10s}, backendRefs: [{name: payments}], RETRY}]\n"
		policy  = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p, namespace: shop}\nspec: {targetRef: {kind: HTTPRoute, name: b}, retry: {numRetries: 2}}\n"
		linkerd = "apiVersion: v1\nkind: Service\nmetadata: {name: payments, namespace: shop, annotations: {retry.linkerd.io/http: 5xx}}\nspec: {}\n"
	)
	a := strings.NewReplacer("NAME", "a", "RETRY", "retry: {attempts: 3}").Replace(kube)
	b := strings.NewReplacer("NAME", "b", ", RETRY", "").Replace(kube)
	istio := func(host string) string {
		return strings.Replace(strings.Replace(mesh, "HOST", host, 1), "NS", "default", 1)
	}
	for _, tt := range []struct {
		name  string
		files []string
		want  string // in the message of FC502, or "" for none
	}{
		{"one", []string{"p.yaml", plain}, ""},
		{"the mesh by the same name", []string{"p.yaml", plain, "vs.yaml", istio("payments")}, "payments is retried by forbear (4 attempts, p.yaml:3:3) and istio (3 attempts, vs.yaml:6:5): one call becomes up to 12 sends"},
		{"the mesh by the full name", []string{"p.yaml", plain, "vs.yaml", istio("payments.default.svc.cluster.local")}, "up to 12 sends"},
		{"by a URL", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'http://pay.default.svc.cluster.local:8080/v1'", 1), "vs.yaml", istio("pay.default.svc.cluster.local")}, "up to 12 sends"},
		{"another service", []string{"p.yaml", plain, "vs.yaml", istio("ledger")}, ""},
		{"a domain is not a service of its first label", []string{"p.yaml", plain, "vs.yaml", istio("payments.example.com")}, ""},
		{"two ports of this machine", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'http://localhost:9999'", 1), "e.conf", strings.NewReplacer("upstream payments", "upstream unused", "http://payments", "http://localhost:8080", "proxy_next_upstream_timeout", "proxy_next_upstream_tries 3; proxy_next_upstream_timeout").Replace(nginxEdge)}, ""},
		{"one port of this machine", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'http://localhost/v1'", 1), "e.conf", strings.NewReplacer("upstream payments", "upstream unused", "http://payments", "http://localhost:80", "proxy_next_upstream_timeout", "proxy_next_upstream_tries 3; proxy_next_upstream_timeout").Replace(nginxEdge)}, "localhost:80 is retried by"},
		{"three layers", []string{"p.yaml", plain, "vs.yaml", istio("payments"), "e.conf", nginxEdge}, "up to 24 sends"},
		{"two callers are no two layers", []string{"p.yaml", plain, "q.yaml", strings.Replace(plain, "service: checkout", "service: checkout2", 1)}, ""},
		{"a gateway before a mesh", []string{"a.yaml", a, "l.yaml", linkerd}, "up to 8 sends"},
		{"namespaces apart", []string{"a.yaml", a, "l.yaml", strings.Replace(linkerd, "namespace: shop", "namespace: other", 1)}, ""},
		{"two routes of one gateway", []string{"a.yaml", a, "b.yaml", b, "p.yaml", policy}, ""},
		{"all below a domain", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'https://api.pay.example'", 1), "vs.yaml", istio("'*.pay.example'")}, "up to 12 sends"},
		{"all below another domain", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'https://api.pay.example'", 1), "vs.yaml", istio("'*.api.pay.example'")}, ""},
		{"spellings of an address", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'http://[2001:DB8::1]:80'", 1), "vs.yaml", istio("'2001:db8:0::1'")}, "up to 12 sends"},
		{"names of this machine", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'http://localhost:8080'", 1), "vs.yaml", istio("'127.0.0.1:8080'")}, "up to 12 sends"},
		{"a URL says which namespace", []string{"p.yaml", strings.Replace(caller, "SERVICE", "url: 'http://payments.other.svc'", 1), "vs.yaml", istio("payments.default.svc.cluster.local")}, ""},
		{"the service has another name", []string{"p.yaml", strings.Replace(caller, "SERVICE", "service: api.pay.example", 1), "vs.yaml", istio("payments.default.svc.cluster.local")}, ""},
		{"a layer that does not retry", []string{"p.yaml", plain, "vs.yaml", strings.Replace(istio("payments"), "attempts: 2", "attempts: 0", 1)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := layered(t, tt.files...)
			var message strings.Builder
			for _, f := range got.Findings {
				if f.ID == "FC502" {
					message.WriteString(f.Message)
				}
			}
			if !strings.Contains(message.String(), tt.want) || tt.want == "" && message.String() != "" {
				t.Errorf("got %q, want %q", message.String(), tt.want)
			}
		})
	}
}

// A retry policy for all routes of a host is a layer on each dependency behind it.
func TestLayersOfOnePolicy(t *testing.T) {
	got := layered(t,
		"p.yaml", strings.Replace(caller, ", SERVICE", "", 1)+"  orders: {owner: checkout, strict: true, methods: [GET]}\n",
		"e.yaml", "virtual_hosts:\n- domains: ['*']\n  retry_policy: {retry_on: connect-failure, num_retries: 2}\n  routes:\n  - {match: {prefix: /p}, route: {cluster: payments}}\n  - {match: {prefix: /o}, route: {cluster: orders}}\n")
	var subjects []string
	for _, f := range got.Findings {
		if f.ID == "FC502" {
			subjects = append(subjects, f.Subject)
		}
	}
	slices.Sort(subjects)
	if want := []string{"orders", "payments"}; !slices.Equal(subjects, want) {
		t.Errorf("FC502 for %v, want %v", subjects, want)
	}
}

// The figures of a path hold the attempts of all layers, and the table of owners
// names them.
func TestLayersMultiply(t *testing.T) {
	files := []string{"p.yaml", strings.Replace(caller, ", SERVICE", "", 1), "e.conf", nginxEdge}
	got := layered(t, files...)
	if l := got.Loads[0]; l.Without != 4 || l.PathWithout != 8 || !slices.Equal(l.Layers, []string{"nginx"}) {
		t.Errorf("got %+v", l)
	}
	read := ReadAll([]Input{{Name: files[0], Data: []byte(files[1])}, {Name: files[2], Data: []byte(files[3])}})
	var b bytes.Buffer
	if err := Markdown(&b, read, &report.Report{Findings: got.Findings}, got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| payments | checkout | **nginx retries it too** |", "| payments | nginx, in e.conf | **forbear retries it too** |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
}

// What cannot be judged is no upper bound, and over any limit.
func TestUnboundedWorstCases(t *testing.T) {
	circle := []string{
		"a.yaml", "service: a\ndependencies: {b: {owner: a, strict: true, methods: [GET]}}\n",
		"b.yaml", "service: b\ndependencies: {a: {owner: b, strict: true, methods: [GET]}}\n",
	}
	got := layered(t, circle...)
	var b bytes.Buffer
	if err := Table(&b, got); err != nil {
		t.Fatal(err)
	}
	if !got.Loads[0].AtLeast || !strings.Contains(b.String(), "whole graph: at worst >= ") {
		t.Errorf("got %+v, %s", got.Loads[0], b.String())
	}
	got = Run([]Source{parse(t, circle[0], circle[1]), parse(t, circle[2], circle[3])}, Options{Now: today, MaxAmplification: 1000})
	if !slices.Contains(ids(got.Findings), "FC504") {
		t.Errorf("a circle is within the limit of 1000: %v", got.Findings)
	}
}

// The worst path without budgets may be another than that with them.
func TestWorstPathWithoutBudgets(t *testing.T) {
	got := layered(t,
		"p.yaml", "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET], max_retries: 1, budget: {ratio: 20%}}\n  c: {owner: a, strict: true, methods: [GET], max_retries: 5, budget: {ratio: 5%}}\n")
	var b bytes.Buffer
	if err := Table(&b, got); err != nil {
		t.Fatal(err)
	}
	if want := "along a -> b; 6x without, along a -> c;"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in %s", want, b.String())
	}
}

// A baseline that knows the fault of one route does not know that of the next.
func TestBaselineKnowsRoutes(t *testing.T) {
	route := strings.Replace(strings.Replace(mesh, "HOST", "b", 1), "retryOn: connect-failure", "retryOn: 5xx", 1)
	second := strings.Replace(route[strings.Index(route, "  - name"):], "name: all", "name: other", 1)
	before := layered(t, "vs.yaml", route)
	after := layered(t, "vs.yaml", route+second)
	known := map[string]bool{}
	for _, f := range before.Findings {
		known[f.Fingerprint()] = true
	}
	fresh := 0
	for _, f := range after.Findings {
		if f.ID == "FC301" && !known[f.Fingerprint()] {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d findings of the new route are new, want 1: %v", fresh, after.Findings)
	}
}
