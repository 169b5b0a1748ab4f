package export

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// gatewayAPI writes an HTTPRoute of a mesh, whose rules are as Istio's routes, and the
// XBackendTrafficPolicy with the budget (GEP-1731, GEP-3388).
func gatewayAPI(w *writer, t *target) {
	name, namespace := t.kubeService()
	w.line("apiVersion: gateway.networking.k8s.io/v1")
	w.line("kind: HTTPRoute")
	w.line("metadata: {name: %s%s}", scalar(resource(t.name)), namespace)
	w.line("spec:")
	w.line(`  parentRefs: [{group: "", kind: Service, name: %s, port: %d}]`, scalar(name), t.port)
	w.line("  rules:")
	safe := make([]string, 0, 5)
	for method := range strings.SplitSeq(idempotent, "|") {
		safe = append(safe, "method: "+method)
	}
	if t.retries > 0 {
		if t.p.Idempotent {
			gatewayRule(w, t, name, true, "")
		} else {
			gatewayRule(w, t, name, true, safe...)
		}
		if t.keyed() {
			gatewayRule(w, t, name, true, `headers: [{type: RegularExpression, name: Idempotency-Key, value: "`+aKey+`"}]`)
		}
	}
	if t.retries == 0 || !t.p.Idempotent {
		gatewayRule(w, t, name, false, "")
	}
	if t.tls {
		w.lose("R-9", "TLS to the service belongs to another resource", "none is used: write a BackendTLSPolicy")
	}
	if t.retries == 0 {
		return
	}
	gatewayBudget(w, t, name, namespace)
	w.writes(t)
	w.lose("R-1", "no jitter, cap or schedule of the waits", "the policy's first wait, "+t.p.Backoff.Base.String()+"; the implementation decides the rest")
	if _, others := only(t.statuses, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout); len(others) > 0 {
		w.lose("R-4", "an implementation may not retry "+join(others, ", "), "they are written, and an implementation that cannot refuses the route")
	}
	w.lose("R-4", "connection failures cannot be selected", "those before the request was sent are retried; the implementation decides on others")
	w.lose("R-5", "Retry-After is not in the API", "the implementation decides")
	w.lose("R-9", "a failed TLS handshake is a failed connection like any other", "it is retried")
}

// kubeService is the service that a route is for, with the text of its namespace. One that is
// not in the cluster needs a service which stands for it.
func (t *target) kubeService() (name, namespace string) {
	host := strings.TrimSuffix(strings.ToLower(t.host), ".cluster.local")
	if short, ok := strings.CutSuffix(host, ".svc"); ok {
		if service, in, ok := strings.Cut(short, "."); ok {
			return service, ", namespace: " + scalar(in)
		}
	}
	// A name of one label is a service of the namespace that the route is in.
	if host != "" && !strings.Contains(host, ".") && !t.ip && label(host) == host {
		return host, ""
	}
	t.standsFor = t.host != t.name
	return label(t.name), ""
}

// label is a name that a service of Kubernetes may have (RFC 1035).
func label(name string) string {
	const most = 63
	name = service(name)
	if name[0] >= '0' && name[0] <= '9' {
		name = "s-" + name
	}
	if len(name) > most {
		h := fnv.New32a()
		h.Write([]byte(name))
		name = fmt.Sprintf("%s-%08x", strings.Trim(name[:most-9], "-"), h.Sum32())
	}
	return name
}

// gatewayRule writes the rules for the requests that match. A path can be put before that of
// a request with one match a rule alone.
func gatewayRule(w *writer, t *target, name string, retried bool, matches ...string) {
	if t.path != "" && len(matches) > 1 {
		for _, m := range matches {
			gatewayRule(w, t, name, retried, m)
		}
		return
	}
	var all []string
	for _, m := range matches {
		all = append(all, "{"+strings.Join(slices.DeleteFunc([]string{"path: {type: PathPrefix, value: /}", m}, func(s string) bool { return s == "" }), ", ")+"}")
	}
	w.line("  - matches: [%s]", strings.Join(all, ", "))
	var rewrite []string
	if t.standsFor && !t.ip && !strings.Contains(t.host, "_") { // a name of DNS
		rewrite = append(rewrite, "hostname: "+scalar(strings.TrimSuffix(strings.ToLower(t.host), ".")))
	}
	if t.path != "" {
		rewrite = append(rewrite, fmt.Sprintf("path: {type: ReplacePrefixMatch, replacePrefixMatch: %q}", t.path))
	}
	if len(rewrite) > 0 {
		w.line("    filters: [{type: URLRewrite, urlRewrite: {%s}}]", strings.Join(rewrite, ", "))
	}
	w.line("    backendRefs: [{name: %s, port: %d}]", scalar(name), t.port)
	w.line("    timeouts: {request: %s, backendRequest: %s}", gatewayTime(t.p.Total), gatewayTime(t.attempt))
	if !retried {
		w.line("    retry: {attempts: 0}")
		return
	}
	codes := ""
	if len(t.statuses) > 0 {
		codes = fmt.Sprintf("codes: [%s], ", join(t.statuses, ", "))
	}
	w.line("    retry: {%sattempts: %d, backoff: %s}", codes, t.retries, gatewayTime(t.p.Backoff.Base))
}

// gatewayBudget writes the budget of the service, in whole percents, over 1 s to 1 h. A
// window of forbear's is an hour at most, too.
func gatewayBudget(w *writer, t *target, name, namespace string) {
	exact := 100 * t.p.Budget.Ratio
	percent := int(math.Floor(exact + 1e-6))
	window := max(t.p.Budget.Window, time.Second)
	// An absent rate means ten a second, and none is not to be had.
	count, every := t.p.Budget.MinRetries, window
	if count == 0 {
		count, every = 1, time.Hour
	}
	w.line("---")
	w.line("apiVersion: gateway.networking.x-k8s.io/v1alpha1")
	w.line("kind: XBackendTrafficPolicy")
	w.line("metadata: {name: %s%s}", scalar(resource(t.name)), namespace)
	w.line("spec:")
	w.line(`  targetRefs: [{group: "", kind: Service, name: %s}]`, scalar(name))
	w.line("  retryConstraint:")
	w.line("    budget: {percent: %d, interval: %s}", percent, gatewayTime(window))
	w.line("    minRetryRate: {count: %d, interval: %s}", count, gatewayTime(every))
	// Istio gives the interval to Envoy (backend_policies.go): see countsRequests.
	w.lose("R-7", "the implementation decides how retries are counted: Istio 1.31 compares those in flight with the requests of the interval",
		fmt.Sprintf("as the API says: of the requests in %s, retries included, %d %% may be retries", gatewayTime(window), percent))
	if float64(percent) < exact-1e-6 {
		w.lose("R-7", "its share is a whole number of percent", fmt.Sprintf("%d %%", percent))
	}
	if window != t.p.Budget.Window {
		w.lose("R-7", "its interval is at least a second", gatewayTime(window))
	}
	if t.p.Budget.MinRetries == 0 {
		w.lose("R-7", "a floor of none means ten retries a second", "one retry in an hour")
	}
}

// gatewayTime writes a duration as GEP-2257 has it, without fractions.
func gatewayTime(d time.Duration) string {
	var b strings.Builder
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / u.unit; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.unit
		}
	}
	return b.String()
}
