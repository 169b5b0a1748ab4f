package foreign

import (
	"cmp"
	"slices"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// egRetries is Envoy Gateway's default of numRetries, and egTriggers what it retries
// where retryOn is missing, as its API reference has them.
const (
	egRetries  = 2
	egTriggers = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
)

// claimsEnvoyGateway knows the policy that has retries.
func claimsEnvoyGateway(n *tree.Node) bool {
	return n.Has("spec") && resource(n, "gateway.envoyproxy.io", "BackendTrafficPolicy")
}

// envoyGateway reads BackendTrafficPolicies, with the routes of Gateway API that they
// target. A policy without retry retries nothing.
func (r *reader) envoyGateway() {
	var routes []*tree.Node
	direct := map[*tree.Node]bool{} // routes with a policy of their own, which is not merged into that of their gateway
	for _, part := range r.beside {
		if resource(part.Root, gatewayGroup, "HTTPRoute", "GRPCRoute") {
			routes = append(routes, part.Root)
		}
	}
	for _, part := range r.parts {
		if spec := part.Root.Get("spec"); spec.Has("mergeType") && !spec.Get("retry").Map() {
			continue
		}
		for _, route := range routes {
			direct[route] = direct[route] || slices.ContainsFunc(egTargets(part.Root), func(t *tree.Node) bool { return egMeans(part.Root, t, route) })
		}
	}
	for _, part := range r.parts {
		retry := part.Root.Get("spec").Get("retry")
		if given(retry) == nil {
			r.quiet(part.Root.At)
			continue
		}
		for _, target := range egTargets(part.Root) {
			r.egTarget(part.Root, target, routes, direct)
		}
	}
}

// egTargets returns what a policy targets, in each of the three forms.
func egTargets(policy *tree.Node) []*tree.Node {
	spec := policy.Get("spec")
	all := slices.Concat(spec.Get("targetRefs").List(), spec.Get("targetSelectors").List())
	if one := spec.Get("targetRef"); one != nil {
		all = append(all, one)
	}
	return all
}

// egMeans reports whether a target is that very route.
func egMeans(policy, target, route *tree.Node) bool {
	meta := route.Get("metadata")
	if target.Get("kind").Text() != route.Get("kind").Text() || refNamespace(nil, policy) != refNamespace(nil, route) {
		return false
	}
	if labels := target.Get("matchLabels"); labels != nil {
		return selects(labels, meta.Get("labels"))
	}
	return target.Get("name").Text() == meta.Get("name").Text()
}

// selects reports whether labels have all pairs of a selector.
func selects(selector, labels *tree.Node) bool {
	return !slices.ContainsFunc(selector.Pairs, func(p tree.Pair) bool { return labels.Get(p.Key).Text() != p.Value.Text() })
}

// egCovers reports whether a policy for a Gateway holds for a route: the route is
// attached to it, and has no policy of its own.
func egCovers(policy, target, route *tree.Node) bool {
	return target.Get("kind").Text() == "Gateway" && slices.ContainsFunc(route.Get("spec").Get("parentRefs").List(), func(ref *tree.Node) bool {
		return ref.Get("name").Text() == target.Get("name").Text() && refNamespace(ref, route) == refNamespace(nil, policy)
	})
}

// egTarget judges what a policy means for one target: the rules of the routes that
// are among the files, or else one unit by the target's name.
func (r *reader) egTarget(policy, target *tree.Node, routes []*tree.Node, direct map[*tree.Node]bool) {
	found := false
	for _, route := range routes {
		if !egMeans(policy, target, route) && (direct[route] || !egCovers(policy, target, route)) {
			continue
		}
		found = true
		for _, rule := range route.Get("spec").Get("rules").List() {
			if given(rule.Get("retry")) != nil {
				continue // it takes precedence, and is judged as Gateway API's
			}
			for _, d := range backends(route, rule) {
				r.egUnit(d, policy, rule)
			}
		}
	}
	if found {
		return
	}
	// A selector may be of expressions, or of a kind alone.
	name := cmp.Or(target.Get("name").Text(), gist(target.Get("matchLabels")), gist(target.Get("matchExpressions")), "*")
	d := policyfile.Dependency{Name: name, Protocol: "http", Route: title(policy), At: target.At}
	if target.Get("kind").Text() == "GRPCRoute" {
		d.Protocol, d.Policy.Kind = "grpc", forbear.GRPC
	}
	if n, ok := policy.Get("spec").Get("retry").Get("numRetries").Number(); !ok || n > 0 {
		kind := target.Get("kind").Text()
		missing := kind + " " + d.Name + " is not in these files"
		if kind == "Gateway" {
			missing = "no route that " + policy.Get("metadata").Get("name").Text() + " applies to through Gateway " + d.Name + " is in these files"
		}
		r.unjudged(target.At, d.Name, "%s: its methods (and whether writes are retried, R-6) and its backends are not judged", missing)
	}
	r.egUnit(d, policy, nil)
}

// egUnit judges the retries of a policy for one backend; rule is nil when no route is
// known.
func (r *reader) egUnit(d policyfile.Dependency, policy, rule *tree.Node) {
	spec := policy.Get("spec")
	retry := spec.Get("retry")
	d.At = retry.At
	d.Route += " " + title(policy)
	most, at := r.number(&d, retry.Get("numRetries"), egRetries, retry.At)
	if retries(&d, most, at); d.Policy.Disabled {
		r.add(d)
		return
	}
	r.egTimes(&d, spec, rule)
	on := &tree.Node{Value: egTriggers, At: retry.At}
	var codes *tree.Node
	if said := retry.Get("retryOn"); said != nil {
		// Without triggers the default ones hold, with these codes.
		if list := words(said.Get("triggers"), said.At); list.Value != "" {
			on = list
		}
		codes = said.Get("httpStatusCodes")
	}
	if d.Policy.Kind == forbear.GRPC {
		r.gatewayWrites(&d, rule, retry.At)
	}
	r.unknown(retry, &d, "numRetries", "numAttemptsPerPriority", "retryOn", "perRetry")
	r.unknown(retry.Get("retryOn"), &d, "triggers", "httpStatusCodes")
	r.unknown(retry.Get("perRetry"), &d, "timeout", "backOff")
	responded := r.conditions(&d, on, codes, rule == nil || d.Policy.Kind == forbear.GRPC || gatewayMethodBound(rule))
	if budget := spec.Get("circuitBreaker").Get("retryBudget"); budget != nil {
		r.share(&d, budget, budget.Get("percent"))
		r.inFlight(&d, nil, "Envoy's budget_interval")
	} else {
		r.cannot(&d, "R-7", "budget", "Envoy Gateway only bounds concurrent retries, to 1024 by default, whatever the traffic")
	}
	if responded {
		r.cannot(&d, "R-5", "", "Envoy Gateway has no setting that honors Retry-After")
	}
	r.add(d)
}

// egTimes reads the durations: a timeout of the route before that of the policy, and
// Envoy's where neither has one.
func (r *reader) egTimes(d *policyfile.Dependency, spec, rule *tree.Node) {
	d.Policy.Total = envoyTimeout
	timeout := cmp.Or(rule.Get("timeouts").Get("request"), spec.Get("timeout").Get("http").Get("requestTimeout"))
	if r.duration(d, "total", timeout, &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(timeout.At, "R-3", d, "total.missing", "a request timeout of %s turns it off: nothing bounds the call and its retries", timeout.Text())
	}
	per := spec.Get("retry").Get("perRetry")
	r.envoyWaits(d, per.Get("timeout"), per.Get("backOff").Get("baseInterval"), per.Get("backOff").Get("maxInterval"), spec.Get("retry").At)
}
