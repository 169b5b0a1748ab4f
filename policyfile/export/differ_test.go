package export

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/policyfile"
)

// Each of these holds or is named: what the policy says, and what the software does.
func TestDifferences(t *testing.T) {
	const (
		one  = "{owner: a, idempotency: reuse"
		two  = one + ", url: 'https://pay.example:8443/v1', endpoints: ['10.0.0.1:8443', '10.0.0.2:8443']"
		call = "{owner: a, kind: grpc, idempotency: refuse"
		cert = ", tls: {cert: /etc/pay.crt, key: /etc/pay.key, min_version: 1.3}}"
	)
	for _, c := range []struct{ name, format, policy, want string }{
		// How often.
		{"nginx asks no server twice", "nginx", one + ", max_retries: 1}", "R-2: no retry at the same address; instead: none until the upstream has several"},
		{"nginx with two", "nginx", two + "}", "!at the same address"},
		{"HAProxy's waits", "haproxy", one + "}", "R-1: no backoff; instead: one retry, at once, or within a second if the connection failed"},
		{"HAProxy's buffer", "haproxy", one + "}", "R-4: a request larger than a buffer (16 KiB by default) is not kept; instead: its failure goes to the caller"},
		{"Envoy's waits", "envoy", one + "}", "R-1: Envoy's documentation has waits of up to 1s, 3s and 7s, not 1s, 2s and 4s; instead: full jitter from the policy's base; the code of Envoy 1.38 stays below 1s, 2s and 4s"},
		{"Envoy's cap", "envoy", one + ", backoff: {base: 200ms, cap: 1s}}", "up to 200ms, 600ms and 1s, not 200ms, 400ms and 800ms"},
		{"Envoy's single wait", "envoy", one + ", max_retries: 1}", "!R-1"},
		{"Envoy's waits at the cap", "envoy", one + ", backoff: {base: 1s, cap: 2s}, max_retries: 2}", "!up to 1s and 2s"},
		{"Envoy's decorrelated waits", "envoy", one + ", backoff: {jitter: decorrelated}}", "!Envoy's documentation"},
		{"Istio's waits", "istio", one + ", max_retries: 5, backoff: {base: 1s, cap: 30s}}", "up to 1s, 3s, 7s, 10s and 10s, not 1s, 2s, 4s, 8s and 16s; instead: full jitter from the policy's base; the code of Envoy 1.38 stays below 1s, 2s, 4s, 8s and 10s"},
		{"Istio's cap", "istio", one + "}", "R-1: no cap of the waits; instead: Envoy's cap, ten times the base: 10s"},
		{"gRPC's waits", "grpc", "{owner: a, kind: grpc, idempotent: true, max_retries: 5, backoff: {base: 100ms, cap: 500ms}}", "R-1: no full jitter: waits lie within 20 % of one time; instead: gRPC's own waits, around 100ms, 200ms, 400ms and 500ms"},
		{"resilience4j's waits", "resilience4j", one + ", max_retries: 2}", "from 1 % to 199 % of 1s and 2s"},
		{"Gateway API's waits", "gatewayapi", one + "}", "R-1: no jitter, cap or schedule of the waits; instead: the policy's first wait, 1s; the implementation decides the rest"},
		{"nginx's waits", "nginx", one + "}", "R-1: no wait between tries; instead: one retry, at the next server"},
		{"Linkerd's waits", "linkerd", one + "}", "R-1: no backoff; instead: retries are sent at once; only the budget limits them"},
		// What may be repeated.
		{"nginx's methods", "nginx", two + "}", "R-6: idempotency keys are invisible; instead: POST, LOCK and PATCH are retried only if they were not sent, all other methods always"},
		{"nginx repeats all", "nginx", "{owner: a, idempotent: true}", "proxy_next_upstream error timeout non_idempotent http_429"},
		{"refused calls in Envoy", "envoy", call + "}", "R-6: methods declared idempotent in a .proto are unknown; instead: nothing is retried"},
		{"refused calls in Istio", "istio", call + "}", "; instead: nothing is retried"},
		{"Envoy's keys", "envoy", one + "}", `{name: idempotency-key, string_match: {safe_regex: {regex: ".{1,64}"}}}`},
		{"Istio's keys", "istio", one + "}", `headers: {idempotency-key: {regex: ".{1,64}"}}`},
		{"HAProxy's keys", "haproxy", one + "}", "acl keyed req.hdr(idempotency-key) -m len 1:64"},
		{"Linkerd's codes", "linkerd", "{owner: a, kind: grpc, idempotent: true}", "R-4: codes cannot be selected; instead: those that Linkerd considers failures are retried"},
		// How long.
		{"Envoy's writes", "envoy", one + ", per_attempt: 1500ms}", "retry_policy: {num_retries: 0, per_try_timeout: 1.5s}"},
		{"Envoy without retries", "envoy", one + ", disabled: true, per_attempt: 1500ms}", "retry_policy: {num_retries: 0, per_try_timeout: 1.5s}"},
		{"Istio's writes", "istio", one + "}", "R-3: no timeout for the attempt of a call that is not retried; instead: the timeout of the whole call"},
		{"Istio without writes", "istio", "{owner: a, idempotent: true}", "!of a call that is not retried"},
		{"Istio's connections", "istio", one + ", connect: 300ms}", "connectionPool: {tcp: {connectTimeout: 0.3s}}"},
		{"Linkerd without retries", "linkerd", one + ", disabled: true}", "R-3: no timeout for one attempt"},
		{"gRPC without retries", "grpc", "{owner: a, kind: grpc, disabled: true}", "R-3: no timeout for one attempt"},
		{"nginx and the total", "nginx", one + ", per_attempt: 90s, total: 20s}", "proxy_read_timeout 20s;"},
		{"HAProxy and the total", "haproxy", one + ", per_attempt: 90s, total: 20s}", "timeout server 20s"},
		{"nginx without retries", "nginx", one + ", disabled: true}", "R-3: its timeout bounds when the last try starts"},
		{"HAProxy without retries", "haproxy", one + ", disabled: true}", "R-3: nothing bounds a request and its retries together"},
		{"nginx's requests", "nginx", one + ", per_attempt: 1500ms}", "proxy_send_timeout 1500ms;"},
		{"callers' own time-outs", "envoy", one + "}", "internal_address_config: {}"},
		// How many in all.
		{"Envoy's floor", "envoy", one + "}", "R-7: no budget over 30 s of retries: budget_interval, from 1.39, counts only the requests over a time, and would allow more; instead: a retry_budget of the requests in flight: 20 %, or 3 retries at once"},
		{"Istio's floor", "istio", one + "}", "20 %, or 3 retries at once"},
		{"Envoy's none", "envoy", one + ", strict: true}", "min_retry_concurrency: 0}"},
		{"Istio's none", "istio", one + ", strict: true}", "minRetryConcurrency: 1}"},
		{"Istio's none, told", "istio", one + ", strict: true}", "R-7: a floor of 0 means 3 concurrent retries; instead: 1 concurrent retry"},
		{"Istio's version", "istio", one + "}", "# retryBudget needs Istio 1.27 or later."},
		{"Gateway API's budget", "gatewayapi", one + ", budget: {ratio: 12.5%, window: 2m}}", "budget: {percent: 12, interval: 2m}\n    minRetryRate: {count: 3, interval: 2m}"},
		{"Gateway API's percent", "gatewayapi", one + ", budget: {ratio: 12.5%}}", "R-7: its share is a whole number of percent; instead: 12 %"},
		{"Gateway API's counts", "gatewayapi", one + "}", "Istio 1.31 compares those in flight with the requests of the interval; instead: as the API says: of the requests in 30s, retries included, 20 % may be retries"},
		{"Gateway API's none", "gatewayapi", one + ", strict: true}", "R-7: a floor of none means ten retries a second; instead: one retry in an hour"},
		{"Gateway API's interval", "gatewayapi", one + ", backoff: {base: 10ms, cap: 100ms}, budget: {window: 500ms}}", "R-7: its interval is at least a second; instead: 1s"},
		{"Gateway API's statuses", "gatewayapi", one + "}", "R-4: an implementation may not retry 408, 429; instead"},
		{"Gateway API's keys", "gatewayapi", one + "}", `headers: [{type: RegularExpression, name: Idempotency-Key, value: ".{1,64}"}]`},
		{"Gateway API and refused keys", "gatewayapi", "{owner: a, idempotency: refuse}", "!Idempotency-Key"},
		{"Gateway API's writes", "gatewayapi", one + "}", "retry: {attempts: 0}"},
		{"Gateway API's time-outs", "gatewayapi", one + ", per_attempt: 1500ms}", "timeouts: {request: 30s, backendRequest: 1s500ms}"},
		{"Gateway API's path", "gatewayapi", two + "}", `urlRewrite: {hostname: pay.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: "/v1"}}`},
		{"Gateway API's service", "gatewayapi", two + "}", "# A Service payments stands for pay.example:8443, as one of type ExternalName does."},
		{"Gateway API's namespace", "gatewayapi", one + ", url: 'http://pay.shop.svc.cluster.local:8080'}", "metadata: {name: payments, namespace: shop}"},
		{"Gateway API and TLS", "gatewayapi", two + "}", "R-9: TLS to the service belongs to another resource; instead: none is used: write a BackendTLSPolicy"},
		{"Gateway API's version", "gatewayapi", one + "}", "# It needs Gateway API 1.3 or later with its experimental channel"},
		{"Linkerd's window", "linkerd", one + ", budget: {window: 10m}}", "R-7: its window is at most a minute; instead: 1m0s"},
		{"Linkerd's window, written", "linkerd", one + ", budget: {window: 10m}}", "ttl: 60s}"},
		{"the breaker's failures", "resilience4j", one + "}", "record-exceptions:"},
		// What else stops calls, or says who calls.
		{"the endpoint of the health gate", "nginx", one + ", url: 'https://pay.example', health: {endpoint: 'https://pay.example/health'}}", "no health gate"},
		{"the pace", "envoy", one + "}", "no pacing after 429s"},
		{"no pace", "envoy", one + ", pace: off}", "!no pace"},
		{"credentials", "istio", one + ", url: 'https://pay.example', credentials: {secret: {env: TOKEN}}}", "R-9: no credentials are added; instead: callers bring their own"},
		// Where, and how.
		{"HAProxy's listener", "haproxy", one + "}", "# Callers connect to 127.0.0.1:10000: choose another address for each dependency."},
		{"Istio has none", "istio", one + "}", "!# Callers connect"},
		{"nginx's host", "nginx", two + "}", "proxy_set_header Host pay.example:8443;"},
		{"nginx's path", "nginx", two + "}", "proxy_pass https://payments/v1$request_uri;"},
		{"nginx's odd path", "nginx", one + ", url: 'http://pay.example/a;b/$x/'}", "proxy_pass http://payments/a%3Bb/%24x$request_uri;"},
		{"nginx's versions", "nginx", two + "}", "proxy_ssl_protocols TLSv1.2 TLSv1.3;"},
		{"nginx's least version", "nginx", two + cert, "proxy_ssl_protocols TLSv1.3;"},
		{"nginx's certificate", "nginx", two + cert, "proxy_ssl_certificate /etc/pay.crt;\n        proxy_ssl_certificate_key /etc/pay.key;"},
		{"nginx and addresses", "nginx", one + ", url: 'https://10.0.0.1'}", "R-9: a certificate for an IP address is not recognized; instead: every call fails, unless tls.server_name is a name in the certificate"},
		{"HAProxy's host", "haproxy", two + "}", "http-request set-header Host pay.example:8443"},
		{"HAProxy's path", "haproxy", two + "}", "http-request set-path /v1%[path]"},
		{"HAProxy's odd path", "haproxy", one + ", url: 'http://pay.example/a%20b'}", "http-request set-path /a%%20b%[path]"},
		{"HAProxy's certificate", "haproxy", two + cert, "ssl-min-ver TLSv1.3 crt /etc/pay.crt"},
		{"HAProxy's key", "haproxy", two + cert, "R-9: certificate and key are one file; instead: /etc/pay.crt has to hold both"},
		{"HAProxy and addresses", "haproxy", one + ", url: 'https://10.0.0.1'}", "R-9: a certificate for an IP address is not recognized"},
		{"HAProxy and HTTP/2", "haproxy", one + ", url: 'http://pay.example', http2: only}", " proto h2"},
		{"HAProxy, HTTP/2 and TLS", "haproxy", two + ", http2: only}", " alpn h2"},
		{"Envoy's host", "envoy", two + "}", `host_rewrite_literal: "pay.example:8443"`},
		{"Envoy's path", "envoy", two + "}", `prefix_rewrite: "/v1/"`},
		{"Envoy's certificate", "envoy", two + cert, `tls_certificates: [{certificate_chain: {filename: "/etc/pay.crt"}, private_key: {filename: "/etc/pay.key"}}]`},
		{"Envoy's least version", "envoy", two + cert, "tls_params: {tls_minimum_protocol_version: TLSv1_3}"},
		{"Istio's certificate", "istio", two + cert, `tls: {mode: MUTUAL, sni: pay.example, subjectAltNames: [pay.example], clientCertificate: "/etc/pay.crt", privateKey: "/etc/pay.key"}`},
		{"Istio's authorities", "istio", one + ", url: 'https://pay.example', tls: {ca: /etc/pay.pem}}", `caCertificates: "/etc/pay.pem"`},
		{"Istio's least version", "istio", two + cert, "R-9: no minimum version of TLS; instead: Istio's own, 1.2"},
		{"Istio and TLS of the caller", "istio", two + "}", "R-4: traffic that the service encrypts itself is invisible; instead: the mesh begins TLS: call it by http"},
		{"Linkerd and TLS", "linkerd", two + "}", "R-4: traffic encrypted before the proxy is invisible; instead: none of it is retried"},
		{"a service of the namespace", "gatewayapi", one + ", url: 'http://payments-svc:8080'}", `targetRefs: [{group: "", kind: Service, name: payments-svc}]`},
		{"a host with a dot at its end", "gatewayapi", one + ", url: 'http://pay.example.'}", "hostname: pay.example}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := write(t, c.format, c.policy)
			text := fmt.Sprintln(string(out.Config), out.Losses)
			want, not := strings.CutPrefix(c.want, "!")
			if strings.Contains(text, want) == not {
				t.Errorf("want %q\n%s", c.want, text)
			}
		})
	}
}

// A name is not written for two dependencies of a file, whose resources would take
// each other's place.
func TestResourceNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"pay-api", "pay_api", "Pay.api", "pay.api", "-pay-api", "payments", "PAYMENTS", "-", "_", ".", strings.Repeat("A", 64)} {
		f, err := policyfile.Parse("p.yaml", []byte("service: a\ndependencies:\n  \""+name+"\": {owner: a, idempotency: reuse, url: 'http://pay.example'}\n"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := Write("istio", &f.Dependencies[0])
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(out.Config), "metadata: {name: ")
		resource, _, _ := strings.Cut(after, "}")
		if first := seen[resource]; first != "" {
			t.Errorf("%s and %s are both %s", first, name, resource)
		}
		seen[resource] = name
		if len(resource) > 253 {
			t.Errorf("%s is long", resource)
		}
	}
	for _, name := range []string{"pay-api", "payments"} {
		if seen[name] != name {
			t.Errorf("%s has another name", name)
		}
	}
}

// What speaks HTTP/2 alone is not written for nginx, which seldom does.
func TestHTTP2Alone(t *testing.T) {
	_, err := Write("nginx", dependency(t, "{owner: a, idempotency: reuse, url: 'http://pay.example', http2: only}"))
	if err == nil || !strings.Contains(err.Error(), "payments speaks only HTTP/2, which few versions of nginx do") {
		t.Errorf("got %v", err)
	}
}
