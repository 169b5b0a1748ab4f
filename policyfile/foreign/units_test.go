package foreign

import (
	"fmt"
	"strings"
	"testing"
)

// units says what is read from documents that stand in files of their own: the name
// of each unit, its retries, and whether there may be more.
func units(files ...string) string {
	var parts []Part
	for i, text := range files {
		name, data, ok := strings.Cut(text, ":::")
		if !ok {
			name, data = fmt.Sprintf("f%d.yaml", i), text
		}
		parts = append(parts, Open(name, []byte(data), "").Parts...)
	}
	var found []string
	for _, result := range Read(parts) {
		for _, d := range result.File.Dependencies {
			more := ""
			if d.AtLeast {
				more = "+"
			}
			found = append(found, fmt.Sprintf("%s %s %d%s", result.File.Format, d.Name, d.Policy.Retries(), more))
		}
		if result.File.Quiet > 0 {
			found = append(found, fmt.Sprintf("%s quiet %d", result.File.Format, result.File.Quiet))
		}
	}
	return strings.Join(found, ", ")
}

// How often a call is sent follows from the product's own defaults, and from what
// stands in other files.
func TestUnits(t *testing.T) {
	const (
		ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {ingressClassName: nginx, rules: [{http: {paths: [{backend: {service: {name: a}}}, {backend: {service: {name: a}}}]}}]}\n"
		route   = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: n, labels: {app: x}}\nspec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: a}]}, {backendRefs: [{name: b}], retry: {attempts: 4}}]}\n"
		policy  = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: p, namespace: n}\nspec: {%s: %s, retry: {}}\n"
		profile = "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {name: a.n.svc.cluster.local}\nspec: {routes: [{isRetryable: true, condition: {all: [{method: GET}]}}, {condition: {method: POST}}]}\n"
		service = "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: n, annotations: {retry.linkerd.io/%s}}\nspec: {}\n"
	)
	for _, tt := range []struct {
		name  string
		files []string
		want  string
	}{
		{"Ingress by default", []string{ingress}, "ingressnginx a 2"},
		{"Ingress behind a ConfigMap", []string{ingress, "data: {proxy-next-upstream-tries: '5'}"}, "ingressnginx a 4"},
		{"Ingress behind one of two", []string{ingress, "data: {proxy-next-upstream-tries: '5'}", "data: {proxy-next-upstream-tries: '6'}"}, "ingressnginx a 2, ingressnginx ingress-nginx 4, ingressnginx ingress-nginx 5"},
		{"passed on unread", []string{strings.Replace(ingress, "name: i", "name: i, annotations: {nginx.ingress.kubernetes.io/ssl-passthrough: 'true'}", 1)}, "ingressnginx quiet 1"},
		{"route", []string{route}, "gatewayapi b.n 4, gatewayapi quiet 1"},
		{"policy for a route", []string{route, fmt.Sprintf(policy, "targetRef", "{kind: HTTPRoute, name: r}")}, "envoygateway a.n 2, gatewayapi b.n 4, gatewayapi quiet 1"},
		{"policy for a gateway", []string{route, fmt.Sprintf(policy, "targetRefs", "[{kind: Gateway, name: edge}]")}, "envoygateway a.n 2, gatewayapi b.n 4, gatewayapi quiet 1"},
		{"policy by labels", []string{route, fmt.Sprintf(policy, "targetSelectors", "[{kind: HTTPRoute, matchLabels: {app: x}}]")}, "envoygateway a.n 2, gatewayapi b.n 4, gatewayapi quiet 1"},
		{"policy for another route", []string{route, fmt.Sprintf(policy, "targetRef", "{kind: HTTPRoute, name: other}")}, "envoygateway other 2, gatewayapi b.n 4, gatewayapi quiet 1"},
		{"policy alone", []string{fmt.Sprintf(policy, "targetRef", "{kind: Gateway, name: edge}")}, "envoygateway edge 2"},
		{"service profile", []string{profile}, "linkerd a.n.svc.cluster.local 3+, linkerd quiet 1"},
		{"annotated service", []string{fmt.Sprintf(service, "http: 5xx")}, "linkerd a.n 1"},
		{"annotated with a limit of none", []string{fmt.Sprintf(service, "limit: '0'")}, "linkerd a.n 1"},
		{"profile before annotations", []string{profile, fmt.Sprintf(service, "limit: '4'")}, "linkerd a.n.svc.cluster.local 3+, linkerd quiet 1, linkerd quiet 1"},
		{"annotated route", []string{strings.Replace(route, "labels: {app: x}", "annotations: {retry.linkerd.io/limit: '3'}", 1)}, "linkerd a.n 3, linkerd b.n 3, linkerd b.n 4"},
		{"AWS by the variables of a pod", []string{"kind: Deployment\nspec: {template: {spec: {containers: [{name: a, env: [{name: AWS_MAX_ATTEMPTS, value: '7'}, {name: AWS_RETRY_MODE, value: standard}]}, {name: b, env: [{name: X, value: y}]}]}}}\n"}, "aws aws/a 6"},
		{"AWS by variables from elsewhere", []string{"containers: [{name: a, env: [{name: AWS_MAX_ATTEMPTS, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]\n"}, "aws aws/a 4+"},
		{"AWS in Compose", []string{"services: {web: {environment: [AWS_RETRY_MODE=adaptive, X=y]}, job: {environment: {AWS_MAX_ATTEMPTS: 9}}}\n"}, "aws aws/web 2+, aws aws/job 8"},
		{"AWS beside another setting of a pod", []string{"containers: [{name: a, env: [{name: AWS_MAX_ATTEMPTS, value: '2'}, {name: C, value: '{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": {\"maxAttempts\": 3, \"initialBackoff\": \"1s\", \"maxBackoff\": \"2s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": [14]}}]}'}]}]\n"}, "grpc all-methods 2, aws aws/a 1"},
		{"a stream's defaults", []string{"spring: {cloud: {stream: {bindings: {in-0: {destination: a}}, default: {consumer: {maxAttempts: 9}}}}}\n"}, "spring stream consumers 8"},
		{"a rule without a policy", []string{"apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: a}\n---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{route: [{destination: {host: a}}], retries: {attempts: 2}}]}\n"}, "istio a 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := units(tt.files...); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
