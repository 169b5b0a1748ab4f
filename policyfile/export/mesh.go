package export

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/waitform"
)

// envoy writes a bootstrap with one listener, whose routes tell idempotent methods
// and writes with a key from other writes, and a cluster with a retry budget.
func envoy(w *writer, t *target) {
	w.line("static_resources:")
	w.line("  listeners:")
	w.line("  - name: %s", scalar(t.name))
	w.line("    address: {socket_address: {address: 127.0.0.1, port_value: 10000}}")
	w.line("    filter_chains:")
	w.line("    - filters:")
	w.line("      - name: envoy.filters.network.http_connection_manager")
	w.line("        typed_config:")
	w.line(`          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`)
	w.line("          stat_prefix: %s", scalar(t.name))
	// No caller is internal, or it could set its own time-outs and counts.
	w.line("          internal_address_config: {}")
	w.line("          http_filters:")
	w.line("          - name: envoy.filters.http.router")
	w.line(`            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}`)
	w.line("          route_config:")
	w.line("            virtual_hosts:")
	w.line("            - name: %s", scalar(t.name))
	w.line(`              domains: ["*"]`)
	// As above, for the count alone.
	w.line(`              request_headers_to_remove: [x-envoy-max-retries, x-envoy-retry-on, x-envoy-retry-grpc-on]`)
	if t.retries > 0 && t.bodyLimit > 0 {
		// From 1.36. per_request_buffer_limit_bytes cannot be above the listener's limit of 1 MiB.
		w.line("              request_body_buffer_limit: %d", t.bodyLimit)
	}
	w.line("              routes:")
	if t.retries > 0 {
		switch {
		case t.p.Idempotent:
			envoyRoute(w, t, "", true)
		case !t.grpc: // whose calls are all POST
			envoyRoute(w, t, `headers: [{name: ":method", string_match: {safe_regex: {regex: "`+idempotent+`"}}}]`, true)
		}
		if t.keyed() {
			envoyRoute(w, t, `headers: [{name: idempotency-key, string_match: {safe_regex: {regex: "`+aKey+`"}}}]`, true)
		}
	}
	if t.retries == 0 || !t.p.Idempotent {
		envoyRoute(w, t, "", false)
	}
	envoyCluster(w, t)
	if t.retries == 0 {
		return
	}
	w.writes(t)
	meshCodes(w, t)
	w.lose("R-5", "a call whose Retry-After outlasts it does not end early, and dates are not read", "seconds are waited out, up to the call's timeout")
	w.lose("R-7", noWindow+"budget_interval, from 1.39,"+countsRequests, "a retry_budget of the requests in flight: "+t.share())
	w.lose("R-9", "a failed TLS handshake is a connect-failure like any other", "it is retried; the cluster verifies its certificate")
}

// envoyRoute writes a route for the requests that match, with retries or without.
func envoyRoute(w *writer, t *target, match string, retried bool) {
	if match != "" {
		match = ", " + match
	}
	w.line("              - match: {prefix: /%s}", match)
	w.line("                route:")
	w.line("                  cluster: %s", scalar(t.name))
	w.line("                  host_rewrite_literal: %s", scalar(t.authority))
	if t.path != "" {
		w.line("                  prefix_rewrite: %s", strconv.Quote(t.path+"/"))
	}
	w.line("                  timeout: %s", seconds(t.p.Total))
	if !retried {
		w.line("                  retry_policy: {num_retries: 0, per_try_timeout: %s}", seconds(t.attempt))
		return
	}
	w.line("                  retry_policy:")
	w.line("                    retry_on: connect-failure,refused-stream,reset,%s", strings.Join(append(grpcWords(t.codes, t.grpc), "retriable-status-codes"), ","))
	w.line("                    retriable_status_codes: [%s]", join(t.statuses, ", "))
	w.line("                    num_retries: %d", t.retries)
	w.line("                    per_try_timeout: %s", seconds(t.attempt))
	w.line("                    retry_back_off: {base_interval: %s, max_interval: %s}", seconds(t.p.Backoff.Base), seconds(t.p.Backoff.Cap))
	w.line("                    rate_limited_retry_back_off:")
	headers := []string{"{name: Retry-After, format: SECONDS}"}
	for name, form := range inOrder(t.p.WaitHeaders) {
		if format, ok := envoyForms[form]; ok {
			headers = append(headers, fmt.Sprintf("{name: %s, format: %s}", name, format))
		}
	}
	w.line("                      reset_headers: [%s]", strings.Join(headers, ", "))
	// Envoy does not heed what is over it, and asks earlier.
	w.line("                      max_interval: 86400s")
}

// envoyForms are the forms of a wait that Envoy knows, too.
var envoyForms = map[string]string{waitform.Seconds: "SECONDS", waitform.Unix: "UNIX_TIMESTAMP"}

func envoyCluster(w *writer, t *target) {
	w.line("  clusters:")
	w.line("  - name: %s", scalar(t.name))
	w.line("    type: STRICT_DNS")
	w.line("    connect_timeout: %s", seconds(t.p.Connect))
	if t.http2 {
		w.line("    typed_extension_protocol_options:")
		w.line("      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:")
		w.line(`        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions`)
		w.line("        explicit_http_config: {http2_protocol_options: {}}")
	}
	w.line("    load_assignment:")
	w.line("      cluster_name: %s", scalar(t.name))
	w.line("      endpoints:")
	w.line("      - lb_endpoints:")
	for _, server := range t.servers {
		host, port, _ := net.SplitHostPort(server) // each has both
		w.line("        - endpoint: {address: {socket_address: {address: %s, port_value: %s}}}", scalar(host), port)
	}
	w.line("    circuit_breakers:")
	w.line("      thresholds:")
	w.line("      - retry_budget: {budget_percent: {value: %s}, min_retry_concurrency: %d}", t.percent(), t.p.Budget.MinRetries)
	if !t.tls {
		return
	}
	w.line("    transport_socket:")
	w.line("      name: envoy.transport_sockets.tls")
	w.line("      typed_config:")
	w.line(`        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`)
	san := "DNS"
	if _, err := netip.ParseAddr(t.serverName); err == nil {
		san = "IP_ADDRESS" // which has no place in a handshake's SNI
	} else {
		w.line("        sni: %s", scalar(t.serverName))
	}
	w.line("        common_tls_context:")
	if t.minTLS != "" { // 1.2 is Envoy's own
		w.line("          tls_params: {tls_minimum_protocol_version: TLSv1_3}")
	}
	if t.cert != "" {
		w.line("          tls_certificates: [{certificate_chain: {filename: %q}, private_key: {filename: %q}}]", t.cert, t.key)
	}
	w.line("          validation_context:")
	w.line("            trusted_ca: {filename: %q}", t.authorities())
	w.line("            match_typed_subject_alt_names: [{san_type: %s, matcher: {exact: %s}}]", san, scalar(t.serverName))
}

// envoyCodes are Envoy's words for codes of gRPC, all that there are.
var envoyCodes = map[string]string{
	"CANCELLED": "cancelled", "DEADLINE_EXCEEDED": "deadline-exceeded", "INTERNAL": "internal",
	"RESOURCE_EXHAUSTED": "resource-exhausted", "UNAVAILABLE": "unavailable",
}

// grpcWords are those for the codes of a dependency that is called by gRPC.
func grpcWords(codes []string, grpc bool) (words []string) {
	for _, code := range codes {
		if word := envoyCodes[code]; grpc && word != "" {
			words = append(words, word)
		}
	}
	return words
}

// meshCodes names what Envoy cannot retry of gRPC.
func meshCodes(w *writer, t *target) {
	if !t.grpc {
		return
	}
	w.lose("R-4", "a code is seen in the headers of a response but not in its trailers", "a call that fails after its headers goes to the caller")
	dropped := slices.DeleteFunc(slices.Clone(t.codes), func(code string) bool { return envoyCodes[code] != "" })
	if len(dropped) > 0 {
		w.lose("R-4", "it cannot retry "+strings.Join(dropped, ", "), "these go to the caller")
	}
	switch lacks := "methods declared idempotent in a .proto are unknown"; {
	case t.keyed():
		w.lose("R-6", lacks, "calls with an idempotency key are retried")
	case !t.p.Idempotent:
		w.lose("R-6", lacks, "nothing is retried")
	}
}

// Envoy's budget compares the retries in flight with the requests in flight. Its
// budget_interval compares the same retries with all requests that began in the interval (the
// field's comment in circuit_breaker.proto, RetryBudgetImpl in resource_manager_impl.h): over
// 30 s that allows every retry there is, which TestEnvoyIntervals shows. So it is not written.
const (
	noWindow       = "no budget over 30 s of retries: "
	countsRequests = " counts only the requests over a time, and would allow more"
)

// share is what may be retried of the requests in flight.
func (t *target) share() string {
	if floor := t.p.Budget.MinRetries; floor > 0 {
		return fmt.Sprintf("%s %%, or %d retries at once", t.percent(), floor)
	}
	return t.percent() + " %"
}

// istioStatuses are the statuses that Istio takes, which are those that net/http has
// a name for.
func istioStatuses(t *target) (known, dropped []int) {
	for _, status := range t.statuses {
		if http.StatusText(status) != "" {
			known = append(known, status)
		} else {
			dropped = append(dropped, status)
		}
	}
	return known, dropped
}

// istio writes a VirtualService, whose routes are as Envoy's, and a DestinationRule
// with the budget.
func istio(w *writer, t *target) {
	w.line("apiVersion: networking.istio.io/v1")
	w.line("kind: VirtualService")
	w.line("metadata: {name: %s}", scalar(resource(t.name)))
	w.line("spec:")
	w.line("  hosts: [%s]", scalar(t.service()))
	w.line("  http:")
	if t.retries > 0 {
		switch {
		case t.p.Idempotent:
			istioRoute(w, t, "retried", "", true)
		case !t.grpc:
			istioRoute(w, t, "retried", `method: {regex: "`+idempotent+`"}`, true)
		}
		if t.keyed() {
			istioRoute(w, t, "keyed", `headers: {idempotency-key: {regex: "`+aKey+`"}}`, true)
		}
	}
	if t.retries == 0 || !t.p.Idempotent {
		istioRoute(w, t, "once", "", false)
	}
	w.line("---")
	w.line("apiVersion: networking.istio.io/v1")
	w.line("kind: DestinationRule")
	w.line("metadata: {name: %s}", scalar(resource(t.name)))
	w.line("spec:")
	w.line("  host: %s", scalar(t.service()))
	w.line("  trafficPolicy:")
	w.line("    connectionPool: {tcp: {connectTimeout: %s}}", seconds(t.p.Connect))
	w.line("    retryBudget: {percent: %s, minRetryConcurrency: %d}", t.percent(), max(t.p.Budget.MinRetries, 1))
	if t.tls {
		mode, files := "SIMPLE", ""
		if t.cert != "" {
			mode, files = "MUTUAL", fmt.Sprintf(", clientCertificate: %q, privateKey: %q", t.cert, t.key)
		}
		if t.ca != "" {
			files += fmt.Sprintf(", caCertificates: %q", t.ca)
		}
		w.line("    tls: {mode: %s, sni: %s, subjectAltNames: [%s]%s}", mode, scalar(t.serverName), scalar(t.serverName), files)
		w.lose("R-4", "traffic that the service encrypts itself is invisible", "the mesh begins TLS: call it by http")
	}
	if t.retries == 0 || !t.p.Idempotent {
		w.lose("R-3", "no timeout for the attempt of a call that is not retried", "the timeout of the whole call")
	}
	if t.retries == 0 {
		return
	}
	w.writes(t)
	meshCodes(w, t)
	if _, dropped := istioStatuses(t); len(dropped) > 0 {
		w.lose("R-4", "it refuses statuses that have no name", "not retried: "+join(dropped, ", "))
	}
	w.lose("R-1", "no cap of the waits", "Envoy's cap, ten times the base: "+(10*t.p.Backoff.Base).String())
	w.lose("R-5", "Retry-After is not read", "nothing; an EnvoyFilter with rate_limited_retry_back_off would")
	w.lose("R-7", noWindow+"budgetInterval, from 1.31,"+countsRequests, "a retryBudget of the requests in flight: "+t.share())
	if t.p.Budget.MinRetries == 0 {
		w.lose("R-7", "a floor of 0 means 3 concurrent retries", "1 concurrent retry")
	}
	w.lose("R-9", "a failed TLS handshake is a connect-failure like any other", "it is retried; certificates are verified")
}

func istioRoute(w *writer, t *target, name, match string, retried bool) {
	w.line("  - name: %s", name)
	if match != "" {
		w.line("    match: [{%s}]", match)
	}
	w.line("    route: [{destination: {host: %s}}]", scalar(t.service()))
	w.line("    timeout: %s", seconds(t.p.Total))
	if !retried {
		w.line("    retries: {attempts: 0}")
		return
	}
	w.line("    retries:")
	w.line("      attempts: %d", t.retries)
	w.line("      perTryTimeout: %s", seconds(t.attempt))
	w.line("      backoff: %s", seconds(t.p.Backoff.Base))
	words := append([]string{"connect-failure", "refused-stream", "reset"}, grpcWords(t.codes, t.grpc)...)
	known, _ := istioStatuses(t)
	for _, status := range known {
		words = append(words, strconv.Itoa(status))
	}
	w.line("      retryOn: %s", strings.Join(words, ","))
}

// linkerd writes a ServiceProfile. The annotations of newer versions bound the
// count, and have no budget; the profile has the budget, which is what stops a storm.
func linkerd(w *writer, t *target) {
	w.line("apiVersion: linkerd.io/v1alpha2")
	w.line("kind: ServiceProfile")
	name := t.service()
	if !strings.Contains(name, ".") {
		name += ".default.svc.cluster.local"
	}
	w.line("metadata: {name: %s}", scalar(name))
	w.line("spec:")
	w.line("  routes:")
	for method := range strings.SplitSeq(idempotent+"|POST|PATCH", "|") {
		write := method == "POST" || method == "PATCH"
		w.line("  - name: %s", method)
		w.line("    condition: {method: %s, pathRegex: \".*\"}", method)
		w.line("    timeout: %s", milliseconds(t.p.Total))
		w.line("    isRetryable: %v", t.retries > 0 && (!write || t.p.Idempotent))
	}
	w.lose("R-3", "no timeout for one attempt", "the timeout of the whole call")
	if t.retries == 0 {
		return
	}
	window := min(t.p.Budget.Window, time.Minute)
	floor := float64(t.p.Budget.MinRetries) / t.p.Budget.Window.Seconds()
	w.line("  retryBudget: {retryRatio: %g, minRetriesPerSecond: %d, ttl: %s}", t.p.Budget.Ratio, int(floor), milliseconds(window))
	w.lose("R-1", "no backoff", "retries are sent at once; only the budget limits them")
	w.lose("R-2", "no count of retries", "the budget and the timeout bound them")
	if t.tls {
		w.lose("R-4", "traffic encrypted before the proxy is invisible", "none of it is retried")
	}
	if t.grpc {
		w.lose("R-4", "codes cannot be selected", "those that Linkerd considers failures are retried")
	} else {
		w.lose("R-4", "statuses cannot be selected", "every 5xx is retried; 408 and 429 are not")
	}
	w.lose("R-5", "Retry-After is not read", "nothing")
	if t.p.Idempotent {
		w.writes(t)
	} else {
		w.lose("R-6", "idempotency keys are invisible", "POST and PATCH are not retried")
	}
	if window < t.p.Budget.Window {
		w.lose("R-7", "its window is at most a minute", window.String())
	}
	// A second of one retry each would be thirty in the standard's window, which has ten.
	if floor > 0 && floor != math.Trunc(floor) {
		w.lose("R-7", "the floor is a whole number of retries a second", fmt.Sprintf("%d per second: a quiet client is retried less", int(floor)))
	}
}

// service is the host as a mesh knows it: a dependency without a URL is a service of
// its name.
func (t *target) service() string {
	if t.host == t.name {
		return service(t.name)
	}
	return t.host
}
