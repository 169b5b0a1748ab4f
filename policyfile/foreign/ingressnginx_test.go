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
