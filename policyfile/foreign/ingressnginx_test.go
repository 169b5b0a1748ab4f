package foreign

import (
	"strings"
	"testing"
)

// The controller reads the annotations about a backend's certificate only with a secret.
func TestIngressCertificates(t *testing.T) {
	const prefix = "    nginx.ingress.kubernetes.io/"
	for _, tt := range []struct{ name, annotations, want string }{
		{"verified", "backend-protocol: HTTPS\n" + prefix + "proxy-ssl-secret: shop/ca\n" + prefix + "proxy-ssl-verify: 'on'", "-R-9"},
		{"without a secret", "backend-protocol: GRPCS\n" + prefix + "proxy-ssl-verify: 'on'", "R-9 tls.verify"},
		{"by default", "backend-protocol: HTTPS\n" + prefix + "proxy-ssl-secret: shop/ca", "R-9 tls.verify"},
		{"without TLS", "backend-protocol: HTTP", "-R-9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: i\n  annotations:\n" + prefix + tt.annotations + "\nspec: {defaultBackend: {service: {name: a}}}\n"
			expect(t, judged(t, "i.yaml", text), strings.Split(tt.want, ";"))
		})
	}
}

// A canary has the annotations of the Ingress with the same host and path, whatever its
// own say (the controller's page on annotations, canary).
func TestIngressCanary(t *testing.T) {
	ingress := func(name, host, annotations string) string {
		return "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: " + name + "\n  namespace: n\n  annotations:\n" + annotations +
			"spec: {ingressClassName: nginx, rules: [{host: " + host + ", http: {paths: [{path: /, backend: {service: {name: " + name + "}}}]}}]}\n---\n"
	}
	const (
		prefix = "    nginx.ingress.kubernetes.io/"
		canary = prefix + "canary: 'true'\n"
		nine   = prefix + "proxy-next-upstream-tries: '9'\n"
		two    = prefix + "proxy-next-upstream-tries: '2'\n"
		tls    = prefix + "backend-protocol: HTTPS\n"
		config = "kind: ConfigMap\ndata: {proxy-next-upstream-tries: '4'}\n"
	)
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"of an Ingress beside it", ingress("main", "a.example", two+tls) + ingress("new", "a.example", canary+nine), []string{"main.n [n/main] x2", "new.n [n/new] x2", "8 R-9"}, []string{"x9", "canary"}},
		{"of none", ingress("main", "b.example", two) + ingress("new", "a.example", canary+nine), []string{"main.n [n/main] x2", "new.n [n/new] x1 at least", "note 16: new is a canary: the annotations of the Ingress with the same host and path apply"}, []string{"x9", "19 R-3"}},
		{"of itself", ingress("new", "a.example", prefix+"canary: 'false'\n"+nine), []string{"new.n [n/new] x9"}, []string{"canary"}},
		{"of an Ingress that says nothing", ingress("main", "a.example", prefix+"rewrite-target: /\n") + ingress("new", "a.example", canary+nine) + config, []string{"main.n [n/main] x4", "new.n [n/new] x4"}, []string{"x9"}},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("i.yaml", tt.text), tt.want, tt.not) })
	}
}

// The controller retries without being asked, so that its ConfigMap is judged whatever
// it says; what is said is in its own words.
func TestIngressConfig(t *testing.T) {
	config := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {" + data + "}\n"
	}
	for _, tt := range []struct {
		name, text string
		want, not  []string
	}{
		{"without a word of retries", config("allow-snippet-annotations: 'true'"), []string{"ingress-nginx [] x3", "R-3 total.missing: proxy-next-upstream-timeout is 0, the default"}, nil},
		{"of another controller", config("use-proxy-protocol: 'true', ssl-redirect: 'false'"), nil, []string{"x3"}},
		{"a word that is not known", config("proxy-next-upstream: error $WHEN"), []string{"proxy-next-upstream $WHEN is unknown here"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { holds(t, said("c.yaml", tt.text), tt.want, tt.not) })
	}
}
