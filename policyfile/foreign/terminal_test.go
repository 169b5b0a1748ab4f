package foreign

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/httpretry"
)

// retriesStatus asks the library itself whether it would send a request again.
func retriesStatus(status int) bool {
	req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "a"}}
	return httpretry.Classify(req, &http.Response{StatusCode: status, Header: http.Header{}, Request: req}, nil).Class.Retryable()
}

// about returns what is found against R-4, such as "classify.http_404" or "unlisted.501".
func about(t *testing.T, name, text string) (found []string) {
	t.Helper()
	for _, line := range judged(t, name, text) {
		if field, ok := strings.CutPrefix(line, "R-4 "); ok {
			found = append(found, field)
		}
	}
	return found
}

// Where a product lists statuses, check finds each one that the library does not retry, and no
// other. What R-4 names is FC306; the rest is FC313.
func TestEveryStatusAsTheLibrary(t *testing.T) {
	forbidden := []int{400, 401, 403, 404, 409, 422}
	haproxy := "defaults\n  mode http\n  timeout connect 1s\n  timeout server 1s\nbackend a\n  retry-on STATUS\n  server s 10.0.0.1:80\n"
	rule := "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec: {rules: [{backendRefs: [{name: a}], retry: {attempts: 1, codes: [STATUS]}}]}\n"
	for _, product := range []struct{ name, file, text string }{
		{"Envoy", "e.yaml", envoyRouteFile(anyPath, "retry_policy: {retry_on: retriable-status-codes, retriable_status_codes: [STATUS]}")},
		{"Envoy's header", "e.yaml", envoyRouteFile(anyPath, "retry_policy: {retry_on: retriable-headers, retriable_headers: [{name: ':status', exact_match: 'STATUS'}]}")},
		{"Gateway API", "g.yaml", rule},
		{"HAProxy", "h.cfg", haproxy},
		{"Step Functions", "s.json", `{"StartAt": "a", "States": {"a": {"Retry": [{"ErrorEquals": ["States.Http.StatusCode.STATUS"]}]}}}`},
		{"Spring", "application.yml", "spring.cloud.gateway.routes: [{id: a, uri: 'lb://b', filters: [{name: Retry, args: {series: [], statuses: STATUS}}]}]"},
		{"Istio", "i.yaml", istioFile("retries: {attempts: 1, retryOn: 'STATUS'}")},
		{"Linkerd", "l.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/http: 'STATUS'}}\n"},
		{"nginx", "nginx.conf", "http { upstream a { server 10.0.0.1; server 10.0.0.2; } server { location / { proxy_pass http://a; proxy_next_upstream http_STATUS; } } }"},
	} {
		for status := lowest; status <= highest; status++ {
			if product.name == "Istio" && http.StatusText(status) == "" || product.name == "nginx" && !slices.Contains(nginxNext, "http_"+strconv.Itoa(status)) {
				continue // which it refuses
			}
			var want []string
			switch code := strconv.Itoa(status); {
			case slices.Contains(forbidden, status):
				want = []string{"classify.http_" + code}
			case !retriesStatus(status):
				want = []string{"unlisted." + code}
			}
			if got := about(t, product.file, strings.ReplaceAll(product.text, "STATUS", strconv.Itoa(status))); !slices.Equal(got, want) {
				t.Errorf("%s, %d: got %v, want %v", product.name, status, got, want)
			}
		}
	}
}

// istioFile is a VirtualService with one route.
func istioFile(route string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{route: [{destination: {host: a}}], timeout: 1s, " + route + "}]}\n"
}

// The same holds for the codes of gRPC, by name in any case and by number, and for the words
// that Envoy and Linkerd have for some of them.
func TestEveryCodeAsTheLibrary(t *testing.T) {
	forbidden := []string{"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED"}
	config := func(code string) string {
		return `{"methodConfig": [{"name": [{"service": "a"}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": [` + code + `]}}]}`
	}
	words := 0
	for number, name := range grpccode.Names {
		verdict := ""
		switch {
		case slices.Contains(forbidden, name):
			verdict = "classify.grpc_"
		case !grpccode.Class(uint32(number)).Retryable():
			verdict = "unlisted."
		}
		is := func(product, file, text, called string) {
			t.Helper()
			var want []string
			if verdict != "" {
				want = []string{verdict + called}
			}
			if got := about(t, file, text); !slices.Equal(got, want) {
				t.Errorf("%s, %s: got %v, want %v", product, name, got, want)
			}
		}
		is("gRPC", "g.json", config(strconv.Quote(name)), name)
		is("gRPC in small letters", "g.json", config(strconv.Quote(strings.ToLower(name))), name)
		is("gRPC by number", "g.json", config(strconv.Itoa(number)), name)
		word := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if _, known := envoyWords[word]; !known {
			continue
		}
		words++
		is("Envoy", "e.yaml", envoyRouteFile(anyPath, "retry_policy: {retry_on: "+word+"}"), word)
		is("Istio", "i.yaml", istioFile("retries: {attempts: 1, retryOn: "+word+"}"), word)
		is("Linkerd", "l.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/grpc: "+word+"}}\n", word)
	}
	if words != 5 {
		t.Errorf("%d codes have a word in Envoy, want 5", words)
	}
}

// Every condition of Envoy, the sixteen of its router's documentation: which statuses and
// codes it retries, and so what check finds.
func TestEnvoyWords(t *testing.T) {
	const lists = "retriable_status_codes: [503, 507], retriable_headers: [{name: ':status', exact_match: '425'}]"
	words := map[string]struct {
		statuses string // those that it retries
		want     string // of R-4
		writes   bool   // it may repeat what was done
		waits    bool   // a response with a Retry-After may come before the retry
	}{
		// Any 5xx, and no response.
		"5xx": {"500-599", "unlisted.5xx", true, true},
		// 502, 503, 504, and no response.
		"gateway-error": {"502-504", "", true, true},
		// The one client error that Envoy retries: a conflict.
		"retriable-4xx": {"409", "classify.http_409", true, true},
		// What the policy lists.
		"retriable-status-codes": {"", "unlisted.507", true, true},
		"retriable-headers":      {"", "unlisted.425", true, true},
		// Connections and streams.
		"reset":                      {"", "", true, false},
		"reset-before-request":       {"", "", false, false},
		"connect-failure":            {"", "", false, false},
		"refused-stream":             {"", "", false, false},
		"http3-post-connect-failure": {"", "", true, false},
		// A limiter before the service.
		"envoy-ratelimited": {"429", "", false, true},
		// A status of gRPC in the response's headers.
		"cancelled":          {"", "unlisted.cancelled", true, true},
		"deadline-exceeded":  {"", "", true, true},
		"internal":           {"", "unlisted.internal", true, true},
		"resource-exhausted": {"", "", true, true},
		"unavailable":        {"", "", true, true},
	}
	for word, tt := range words {
		lines := judged(t, "e.yaml", envoyRouteFile(anyPath, "retry_policy: {retry_on: "+word+", "+lists+"}"))
		for line, want := range map[string]bool{"R-4 " + tt.want: tt.want != "", "R-6 methods": tt.writes, "R-5 retry_after": tt.waits, " word.": false} {
			if says(lines, line) != want {
				t.Errorf("%s: %q is %v, want %v, in:\n%s", word, line, !want, want, strings.Join(lines, "\n"))
			}
		}
		// The library would retry each of the statuses exactly if there is no finding.
		retried := !slices.ContainsFunc(span(tt.statuses), func(status int) bool { return !retriesStatus(status) })
		if tt.statuses != "" && retried != (tt.want == "") {
			t.Errorf("%s: the library retries all of %s: %v", word, tt.statuses, retried)
		}
	}
	if len(words) != 16 || len(envoyWords) != len(words) {
		t.Errorf("%d words are tested, and %d are known; want 16", len(words), len(envoyWords))
	}
}

// A word that a product does not know is found, with the one that may be meant.
func TestMisspeltWords(t *testing.T) {
	policy := func(on string) string { return envoyRouteFile(anyPath, "retry_policy: {retry_on: "+on+"}") }
	header := func(key, value string) string {
		return envoyRouteFile(anyPath, "retry_policy: {}") + "    request_headers_to_add: [{header: {key: " + key + ", value: '" + value + "'}}]\n"
	}
	nginx := "http { upstream a { server 10.0.0.1; server 10.0.0.2; } server { location / { proxy_pass http://a; proxy_next_upstream WORDS; } } }"
	haproxy := "defaults\n  mode http\nbackend a\n  retry-on WORDS\n  server s 10.0.0.1:80\n"
	gateway := "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: a}\nspec: {targetRef: {kind: HTTPRoute, name: a}, retry: {retryOn: {triggers: [WORDS]}}}\n"
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {WORDS}}\n"
	spring := "spring.cloud.gateway.routes: [{id: a, uri: 'lb://b', filters: [{name: Retry, args: {WORDS}}]}]"
	machine := `{"StartAt": "a", "States": {"a": {"Retry": [{"ErrorEquals": ["WORDS"]}]}}}`
	for _, tt := range []struct{ name, file, text, words, want string }{
		{"Envoy", "e.yaml", policy("'5xx, conect-failure'"), "", `"conect-failure" is not a condition, and Envoy ignores it: did you mean connect-failure?`},
		{"Envoy's only word", "e.yaml", policy("gatewayerror"), "", `"gatewayerror" is not a condition, and Envoy ignores it, so nothing is retried: did you mean gateway-error?`},
		{"Envoy in capitals", "e.yaml", policy("5XX"), "", "did you mean 5xx?"},
		{"Envoy and a status", "e.yaml", policy("'503'"), "", "so nothing is retried: list it in retriable_status_codes"},
		{"Envoy and a template", "e.yaml", policy("'${RETRY_ON}'"), "", ""},
		{"Envoy and an empty word", "e.yaml", policy("'5xx,'"), "", ""},
		{"Envoy's virtual host", "e.yaml", strings.Replace(policy("5xx"), "  routes:", "  retry_policy: {retry_on: restet}\n  routes:", 1), "", ""}, // hidden
		{"Envoy's header", "e.yaml", header("x-envoy-retry-on", "gateway-eror"), "", `"gateway-eror" is not a word of x-envoy-retry-on, and Envoy ignores it: did you mean gateway-error?`},
		{"Envoy's header for gRPC", "e.yaml", header("x-envoy-retry-grpc-on", "5xx"), "", `"5xx" is not a word of x-envoy-retry-grpc-on`},
		{"a code in the header for HTTP", "e.yaml", header("X-Envoy-Retry-On", "cancelled"), "", `"cancelled" is not a word of`},
		{"Envoy's header, well spelt", "e.yaml", header("x-envoy-retry-grpc-on", "cancelled"), "", ""},
		{"Envoy's header from the request", "e.yaml", header("x-envoy-retry-on", "%REQ(x)%"), "", ""},
		{"Istio", "i.yaml", istioFile("retries: {attempts: 1, retryOn: 'conect-failure,503'}"), "", "and the resource is refused: did you mean connect-failure?"},
		{"Istio and no status", "i.yaml", istioFile("retries: {attempts: 1, retryOn: '599'}"), "", "Istio takes only statuses that have a name"},
		{"Istio's header", "i.yaml", istioFile("headers: {request: {set: {x-envoy-retry-on: restet}}}"), "", "did you mean reset?"},
		{"Envoy Gateway", "g.yaml", gateway, "retriable-status-code", "did you mean retriable-status-codes?"},
		{"Envoy Gateway and a status", "g.yaml", gateway, "503", "list it in httpStatusCodes"},
		{"gRPC", "g.json", `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILBLE"]}}]}`, "", "UNAVAILBLE is not a status code: did you mean UNAVAILABLE?"},
		{"nginx", "nginx.conf", nginx, "error timeot", `"timeot" is not a word of proxy_next_upstream, and nginx refuses the file: did you mean timeout?`},
		{"nginx and another status", "nginx.conf", nginx, "http_401", `"http_401" is not a word of proxy_next_upstream, and nginx refuses the file: leave it out`},
		{"nginx and all of its words", "nginx.conf", nginx, strings.Join(nginxNext[:len(nginxNext)-1], " "), ""},
		{"ingress-nginx", "i.yaml", "nginx.ingress.kubernetes.io/proxy-next-upstream: error timeot\n", "", `"timeot" is not a word of proxy-next-upstream`},
		{"HAProxy", "h.cfg", haproxy, "503 empty-responce", `"empty-responce" is not a word of retry-on, and HAProxy refuses the file: did you mean empty-response?`},
		{"HAProxy and another status", "h.cfg", haproxy, "410", `"410" is not a word of retry-on, and HAProxy refuses the file: leave it out`},
		{"HAProxy and all of its words", "h.cfg", haproxy, strings.Join(haproxyOn[1:], " "), ""},
		{"Linkerd", "l.yaml", service, "retry.linkerd.io/http: 'gateway-eror,503'", "and Linkerd retries nothing: did you mean gateway-error?"},
		{"Linkerd's gRPC", "l.yaml", service, "retry.linkerd.io/grpc: unavalable", "did you mean unavailable?"},
		{"Linkerd, well spelt", "l.yaml", service, "retry.linkerd.io/http: '500,502-504,Gateway-Error', retry.linkerd.io/grpc: Unavailable", ""},
		{"Spring's statuses", "application.yml", spring, "statuses: BAD_GATWAY", "did you mean BAD_GATEWAY?"},
		{"Spring's series", "application.yml", spring, "series: SERVER_EROR", "did you mean SERVER_ERROR?"},
		{"Spring, well spelt", "application.yml", spring, "statuses: 'BAD_GATEWAY,NotImplemented,425', series: server_error", ""},
		{"Spring's old names", "application.yml", spring, "statuses: 'CHECKPOINT,MOVED_TEMPORARILY,METHOD_FAILURE,DESTINATION_LOCKED,INSUFFICIENT_SPACE_ON_RESOURCE'", ""},
		{"Spring's shortcut on the servlet stack", "application.yml", "spring.cloud.gateway.mvc.routes: [{id: a, uri: 'http://b', filters: ['Retry=3,SERVER_ERROR,GET']}]", "", ""},
		{"Step Functions", "s.json", machine, "States.Timout", `"States.Timout" is not an error of Step Functions, and nothing matches it: did you mean States.Timeout?`},
		{"Step Functions and a group", "s.json", machine, "States.Http.StatusCode.5xx", "nothing matches it: write one status, as in States.Http.StatusCode.503"},
		{"Step Functions and no status", "s.json", machine, "States.Http.StatusCode.Any", "nothing matches it: write one status"},
		{"Step Functions and a service's own", "s.json", machine, "Lambda.Timout", ""},
		{"AWS", "config", "[default]\nretry_mode = standart\n", "", "did you mean standard?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := tt.file
			if tt.name == "AWS" {
				file = ".aws/config"
			}
			var got strings.Builder
			for line := range strings.SplitSeq(said(file, strings.ReplaceAll(tt.text, "WORDS", tt.words)), "\n") {
				if strings.Contains(line, " word.") || strings.Contains(line, "status code") {
					got.WriteString(line + "\n")
				}
			}
			if !strings.Contains(got.String(), tt.want) || (got.String() == "") != (tt.want == "") || strings.Count(got.String(), "\n") > 1 {
				t.Errorf("got %q, want %q, in\n%s", got.String(), tt.want, said(file, strings.ReplaceAll(tt.text, "WORDS", tt.words)))
			}
		})
	}
}

// Exceptions and statuses of Java are known by the names of their statuses.
func TestNamedStatuses(t *testing.T) {
	for name, want := range map[string]int{"NOT_FOUND": 404, "NotImplemented": 501, "UNPROCESSABLE_CONTENT": 422, "UnprocessableEntity": 422, "BAD_GATEWAY": 502, "URI_TOO_LONG": 414, "": 0, "503": 0} {
		if got := statusNamed(name); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"org.springframework.web.client.HttpServerErrorException$NotImplemented":     "unlisted.NotImplemented",
		"org.springframework.web.client.HttpServerErrorException.ServiceUnavailable": "",
		"org.springframework.web.client.HttpServerErrorException":                    "unlisted.HttpServerErrorException",
		"org.springframework.web.client.HttpClientErrorException$Gone":               "unlisted.Gone",
		"org.springframework.web.client.HttpClientErrorException$Conflict":           "classify.Conflict",
		"feign.FeignException$FeignClientException":                                  "classify.FeignClientException",
	} {
		got := strings.Join(about(t, "application.yml", fmt.Sprintf("resilience4j.retry.instances.a: {retryExceptions: ['%s']}", name)), " ")
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The second argument of Spring's shortcut is a series on the servlet stack.
func TestShortcutOfTheServletStack(t *testing.T) {
	text := "spring.cloud.gateway.mvc.routes: [{id: a, uri: 'http://b', filters: ['Retry=3,CLIENT_ERROR,GET']}]"
	if got := about(t, "application.yml", text); !slices.Equal(got, []string{"classify.http_4xx"}) {
		t.Errorf("got %v, want classify.http_4xx", got)
	}
}

// A group of statuses is one finding a place, which says what to write, unless R-4 forbids one
// of them.
func TestSpans(t *testing.T) {
	for word, want := range map[string]string{
		"502-504": "", "500": "", "500-504": "unlisted.500-504", "5xx": "unlisted.5xx", "400-401": "classify.http_400 classify.http_401",
		"600": "", "504-500": "", "gateway-error": "",
	} {
		got := strings.Join(about(t, "l.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a, annotations: {retry.linkerd.io/http: '"+word+"'}}\n"), " ")
		if got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

// What several routes share is found once.
func TestSharedConditions(t *testing.T) {
	text := "virtual_hosts: [{name: v, domains: ['*'], retry_policy: {retry_on: '5xx,internal,restet'}, routes: [{match: {prefix: /a}, route: {cluster: a}}, {match: {prefix: /b}, route: {cluster: b}}]}]\n"
	lines := judged(t, "e.yaml", text)
	for _, line := range []string{"R-4 unlisted.5xx", "R-4 unlisted.internal", " word.restet"} {
		if n := strings.Count("\n"+strings.Join(lines, "\n")+"\n", "\n"+line+"\n"); n != 1 {
			t.Errorf("%q %d times, want once, in:\n%s", line, n, strings.Join(lines, "\n"))
		}
	}
}
