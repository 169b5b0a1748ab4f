package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// gatewayGroup is the group of Gateway API, and gatewayTrial that of its
// experimental resources.
const (
	gatewayGroup = "gateway.networking.k8s.io"
	gatewayTrial = "gateway.networking.x-k8s.io"
)

// claimsGatewayAPI knows routes and the policy that has a retry budget.
func claimsGatewayAPI(n *tree.Node) bool {
	return n.Has("spec") && (resource(n, gatewayGroup, "HTTPRoute", "GRPCRoute") || resource(n, gatewayTrial, "XBackendTrafficPolicy"))
}

// gatewayAPI reads the routes of Gateway API. GEP-1731 describes the retries: one
// rule has them, and every backend of the rule gets them.
func (r *reader) gatewayAPI() {
	budgets := named{}
	for part := range r.each() {
		if !resource(part.Root, gatewayTrial, "XBackendTrafficPolicy") {
			continue
		}
		for _, ref := range part.Root.Get("spec").Get("targetRefs").List() {
			d := kubeService(ref.Get("name").Text(), refNamespace(nil, part.Root), ref.At)
			budgets.add(part, d.Name, part.Root.Get("spec").Get("retryConstraint"))
		}
	}
	for part := range r.each() {
		if resource(part.Root, gatewayGroup, "HTTPRoute", "GRPCRoute") {
			for _, rule := range part.Root.Get("spec").Get("rules").List() {
				r.gatewayRule(part.Root, rule, budgets)
			}
		}
	}
}

// refNamespace is the namespace that a reference of a resource means: its own, or else
// the resource's.
func refNamespace(ref, n *tree.Node) string {
	return cmp.Or(ref.Get("namespace").Text(), n.Get("metadata").Get("namespace").Text())
}

// backends returns a dependency for each backend of a rule. Its route is named after the
// rule's name, or by what it matches.
func backends(route, rule *tree.Node) (all []policyfile.Dependency) {
	which := cmp.Or(rule.Get("name").Text(), gist(rule.Get("matches")))
	for _, ref := range rule.Get("backendRefs").List() {
		name := ref.Get("name").Text()
		if name == "" {
			continue
		}
		d := kubeService(name, refNamespace(ref, route), ref.At)
		d.Route = title(route) + " " + which
		if route.Get("kind").Text() == "GRPCRoute" {
			d.Protocol, d.Policy.Kind = "grpc", forbear.GRPC
		}
		all = append(all, d)
	}
	return all
}

// gatewayRule reads the retries of one rule. One without them retries nothing that
// Gateway API knows of.
func (r *reader) gatewayRule(route, rule *tree.Node, budgets named) {
	retry := rule.Get("retry")
	r.retryFilters(rule)
	for _, d := range backends(route, rule) {
		if given(retry) == nil {
			r.quiet(rule.At)
			continue
		}
		if d.Policy.Kind == forbear.GRPC { // GRPCRouteRule has none, up to 1.7
			r.unjudged(retry.At, d.Name, "%s: a GRPCRoute has no retry in Gateway API, and it is not read", d.Name)
			r.quiet(rule.At)
			continue
		}
		attempts := retry.Get("attempts")
		if n, ok := count(attempts); ok { // those after the first, in spite of the name
			retries(&d, n, attempts.At)
		} else {
			r.open(retry.At, &d, "the rule does not say how often %s is retried: each implementation has its own number", d.Name)
		}
		if d.Policy.Disabled {
			r.duration(&d, "total", rule.Get("timeouts").Get("request"), &d.Longest)
			r.add(d)
			continue
		}
		r.gatewayTimes(&d, rule, retry)
		r.statuses(&d, retry.Get("codes").List())
		if !gatewayMethodBound(rule) {
			r.refuse(retry.At, "R-6", &d, "methods", "every method is retried, even POST without an Idempotency-Key: match on method")
		}
		r.gatewayBudget(&d, budgets)
		r.cannot(&d, "R-1", "", "Gateway API sets the shortest wait before a retry, but no jitter and no longest wait")
		r.cannot(&d, "R-5", "", "Gateway API says nothing about Retry-After: what a gateway does with it depends on the implementation")
		r.add(d)
	}
}

// retryFilters notes the filters of a rule, or of its backends, whose kind speaks of retries,
// as Consul's RouteRetryFilter does: they are another product's.
func (r *reader) retryFilters(rule *tree.Node) {
	filters := rule.Get("filters").List()
	for _, ref := range rule.Get("backendRefs").List() {
		filters = slices.Concat(filters, ref.Get("filters").List())
	}
	for _, f := range filters {
		ref := f.Get("extensionRef")
		if kind := ref.Get("kind").Text(); strings.Contains(strings.ToLower(kind), "retr") {
			r.unjudged(ref.At, "", "%s %s decides on this rule's retries, and is not judged", kind, ref.Get("name").Text())
		}
	}
}

// gatewayTimes reads the durations: timeouts.request covers the retries, and
// backendRequest one of them. What they are without is up to the implementation.
func (r *reader) gatewayTimes(d *policyfile.Dependency, rule, retry *tree.Node) {
	timeouts := rule.Get("timeouts")
	request := timeouts.Get("request")
	switch r.duration(d, "total", request, &d.Policy.Total); {
	case d.Policy.Total > 0:
	case given(request) == nil:
		r.refuse(retry.At, "R-3", d, "total.missing", "the rule has no timeouts.request: nothing in it bounds the call and its retries")
	default:
		r.refuse(request.At, "R-3", d, "total.missing", "timeouts.request %s bounds nothing", request.Text())
	}
	r.attempt(d, timeouts.Get("backendRequest"))
	// How the waits grow is not in the file: a schedule says the shortest.
	d.Lacks = append(d.Lacks, "backoff.cap")
	var wait time.Duration
	r.duration(d, "backoff.base", retry.Get("backoff"), &wait)
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0, wait}}
}

// gatewayWrites judges the methods that a rule of a GRPCRoute matches.
func (r *reader) gatewayWrites(d *policyfile.Dependency, rule *tree.Node, at policyfile.Position) {
	matches := rule.Get("matches").List()
	if len(matches) == 0 {
		matches = []*tree.Node{nil} // every method
	}
	for _, m := range matches {
		r.grpcWrites(d, grpcName{service: m.Get("method").Get("service").Text(), method: m.Get("method").Get("method").Text()}, at)
	}
}

// gatewayMethodBound reports whether every match of a rule names an idempotent
// method, or a header with an idempotency key.
func gatewayMethodBound(rule *tree.Node) bool {
	matches := rule.Get("matches").List()
	return len(matches) > 0 && !slices.ContainsFunc(matches, func(m *tree.Node) bool {
		keyed := slices.ContainsFunc(m.Get("headers").List(), func(h *tree.Node) bool { return strings.EqualFold(h.Get("name").Text(), "Idempotency-Key") })
		return !keyed && !idempotent(m.Get("method").Text())
	})
}

// idempotent reports whether a method may be repeated (RFC 9110 section 9.2.2).
func idempotent(method string) bool {
	return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"}, method)
}

// gatewayBudget reads the budget of a service: XBackendTrafficPolicy has it (GEP-3388),
// 20 % over 10 s by default, and 10 retries a second whatever the share says.
func (r *reader) gatewayBudget(d *policyfile.Dependency, budgets named) {
	constraint, _ := budgets.in(r.part, d.Name)
	if constraint == nil {
		r.cannot(d, "R-7", "budget", "a route of Gateway API has no retry budget: failures are sent again whatever the load")
		return
	}
	window := constraint.Get("budget").Get("interval")
	r.keys(constraint, d, "budget", "minRetryRate")
	r.keys(given(constraint.Get("budget")), d, "percent", "interval")
	r.keys(given(constraint.Get("minRetryRate")), d, "count", "interval")
	r.share(d, constraint, constraint.Get("budget").Get("percent"))
	d.Policy.Budget.Window = gatewayWindow
	if r.duration(d, "budget.window", window, &d.Policy.Budget.Window); given(window) == nil {
		d.SetPlace("budget.window", constraint.At)
	} else if w := d.Policy.Budget.Window; w > 0 && (w < time.Second || w > time.Hour) && r.told.first(window.At, "range") {
		r.unjudged(window.At, d.Name, "%s: the API refuses an interval of %s: want 1s to 1h", d.Name, window.Text())
	}
	// By BudgetDetails a share of the requests of the interval may be retries. Istio hands it
	// to Envoy (backend_policies.go in 1.31); see inFlight.
	r.cannot(d, "R-7", "", "what the share of an XBackendTrafficPolicy bounds depends on the implementation: Istio 1.31 bounds the retries in flight, not those of the interval")
	rate := given(constraint.Get("minRetryRate"))
	if rate == nil {
		r.rate(d, 10, constraint.At, "minRetryRate is 10 in 1s, the default", gatewayRate)
		return
	}
	count, counted := rate.Get("count").Number()
	interval, timed := rate.Get("interval").Span()
	if !counted || !timed || interval <= 0 {
		d.Lacks = append(d.Lacks, "budget")
		r.unjudged(rate.At, d.Name, "%s: minRetryRate cannot be read, so what it allows is unknown", d.Name)
		return
	}
	r.rate(d, count/interval.Seconds(), rate.At, fmt.Sprintf("minRetryRate is %g in %s", count, rate.Get("interval").Text()), gatewayRate)
}

// gatewayWindow is the interval of a budget that says none.
const gatewayWindow = 10 * time.Second

// gatewayRate is the highest minRetryRate that the standard allows.
const gatewayRate = "{count: 10, interval: 30s}"
