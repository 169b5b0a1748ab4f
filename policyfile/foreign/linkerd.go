package foreign

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// The defaults of Linkerd: its page on retries has the limit, that on service
// profiles the timeout and the budget. The waits are the proxy's own.
const (
	linkerdRetries = 1
	linkerdTimeout = 10 * time.Second
	linkerdWindow  = 10 * time.Second
	linkerdFloor   = 10.0 // retries per second that a service profile always allows
	linkerdBase    = 25 * time.Millisecond
)

// linkerdRetry are the annotations that switch retries on, each by itself.
var linkerdRetry = []string{"retry.linkerd.io/http", "retry.linkerd.io/grpc", "retry.linkerd.io/limit", "retry.linkerd.io/timeout"}

// claimsLinkerd knows service profiles, Linkerd's own routes, and the services and
// routes of others that have an annotation of its retries or timeouts.
func claimsLinkerd(n *tree.Node) bool {
	if resource(n, "linkerd.io", "ServiceProfile") || resource(n, "policy.linkerd.io", "HTTPRoute") {
		return n.Has("spec")
	}
	if !resource(n, "v1", "Service") && !resource(n, gatewayGroup, "HTTPRoute", "GRPCRoute") {
		return false
	}
	return slices.ContainsFunc(n.Get("metadata").Get("annotations").Fields(), func(p tree.Pair) bool {
		return strings.HasPrefix(p.Key, "retry.linkerd.io/") || strings.HasPrefix(p.Key, "timeout.linkerd.io/")
	})
}

// linkerd reads service profiles, and annotations, which do not hold for a service
// that has a profile.
func (r *reader) linkerd() {
	profiles := named{}
	for part := range r.each() {
		if resource(part.Root, "linkerd.io", "ServiceProfile") {
			name := part.Root.Get("metadata").Get("name").Text()
			profiles.add(part, strings.TrimSuffix(strings.TrimSuffix(name, ".cluster.local"), ".svc"), part.Root)
			r.profile(part.Root)
		}
	}
	for part := range r.each() {
		n := part.Root
		switch {
		case resource(n, "linkerd.io", "ServiceProfile"):
		case n.Get("kind").Text() == "Service":
			d := kubeService(n.Get("metadata").Get("name").Text(), refNamespace(nil, n), n.At)
			r.annotated(d, n, nil, profiles)
		default:
			for _, rule := range n.Get("spec").Get("rules").List() {
				for _, d := range linkerdBackends(n, rule) {
					r.annotated(d, n, rule, profiles)
				}
				// Linkerd does not read them, and a gateway in front of it may.
				if given(rule.Get("retry")) != nil {
					r.gatewayRule(n, rule, nil)
				}
			}
		}
	}
}

// linkerdBackends are what a rule sends to: its backends, or else the services that
// the route is attached to.
func linkerdBackends(route, rule *tree.Node) []policyfile.Dependency {
	all := backends(route, rule)
	if len(all) > 0 {
		return all
	}
	parents := &tree.Node{Kind: tree.Map, At: rule.At, Pairs: []tree.Pair{
		{Key: "backendRefs", Value: route.Get("spec").Get("parentRefs")}, {Key: "name", Value: rule.Get("name")}, {Key: "matches", Value: rule.Get("matches")},
	}}
	return backends(route, parents)
}

// annotated judges what the annotations of a service or a route say.
func (r *reader) annotated(d policyfile.Dependency, n, rule *tree.Node, profiles named) {
	first := n.Get("metadata").Get("annotations").Get(linkerdRetry...)
	if first == nil {
		r.quiet(n.At)
		return
	}
	if all := nearestOf(r.part, profiles[d.Name]); len(all) > 0 {
		r.quiet(n.At)
		r.unjudged(first.At, d.Name, "%s: these annotations do not apply beside a service profile, such as the one in %s: they are not judged", d.Name, all[0].At)
		return
	}
	d.At = first.At
	// A limit of 0 counts as none at all, and the default holds.
	limit, at := r.number(&d, annotation(n, "retry.linkerd.io/limit"), linkerdRetries, first.At)
	if limit == 0 {
		limit, at = linkerdRetries, first.At
	}
	retries(&d, limit, at)
	total := cmp.Or(annotation(n, "timeout.linkerd.io/request"), rule.Get("timeouts").Get("request"))
	if r.duration(&d, "total", total, &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(first.At, "R-3", &d, "total.missing", "no timeout.linkerd.io/request bounds the call and its retries")
	}
	r.attempt(&d, annotation(n, "timeout.linkerd.io/response"))
	r.attempt(&d, annotation(n, "retry.linkerd.io/timeout"))
	d.Policy.Backoff = forbear.Backoff{Base: linkerdBase, Cap: 10 * linkerdBase}
	codes := annotation(n, "retry.linkerd.io/http")
	said := annotation(n, "retry.linkerd.io/grpc")
	r.linkerdCodes(&d, codes, said)
	grpc := d.Policy.Kind == forbear.GRPC || codes == nil && said != nil
	if !grpc && !gatewayMethodBound(rule) {
		r.refuse(first.At, "R-6", &d, "methods", "every method is retried, even POST without an Idempotency-Key: annotate a route that matches on method")
	}
	r.cannot(&d, "R-7", "budget", "Linkerd's annotated retries have no budget: that of a service profile does not apply to them")
	r.linkerdLimits(&d)
	r.add(d)
}

// linkerdCodes judges the statuses and the gRPC codes of the annotations.
func (r *reader) linkerdCodes(d *policyfile.Dependency, http, grpc *tree.Node) {
	refused := func(n *tree.Node, word string, known ...string) {
		r.misspelt(n.At, d, word, "is not a condition, and Linkerd retries nothing", meant(word, known))
	}
	for word := range strings.SplitSeq(http.Text(), ",") {
		if span(word) == nil && http != nil && !strings.EqualFold(word, "gateway-error") {
			refused(http, word, "5xx", "gateway-error")
		}
		r.terminals(placed(http, d.At), d, word, "write 500,gateway-error")
	}
	for word := range strings.SplitSeq(grpc.Text(), ",") {
		if code, ok := envoyCode(strings.ToLower(word)); ok { // the same words
			r.code(grpc.At, d, code, word)
		} else if grpc != nil {
			refused(grpc, word, "cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable")
		}
	}
}

func (r *reader) linkerdLimits(d *policyfile.Dependency) {
	r.cannot(d, "R-1", "", "Linkerd chooses its own waits: 25 to 250 ms without full jitter, and none with a service profile")
	r.cannot(d, "R-5", "", "Linkerd ignores Retry-After")
}

// profile reads a service profile. A route is retried as often as its budget and its
// timeout allow: nothing counts the retries of one request.
func (r *reader) profile(n *tree.Node) {
	spec, name := n.Get("spec"), n.Get("metadata").Get("name")
	retried := slices.ContainsFunc(spec.Get("routes").List(), func(route *tree.Node) bool { return route.Get("isRetryable").True() })
	if retried && name != nil && !strings.Contains(name.Text(), ".") {
		r.unjudged(name.At, name.Text(), "Linkerd finds a profile by the full host name of a service, %[1]s.NAMESPACE.svc.cluster.local, not by %[1]s", name.Text())
	}
	for _, route := range spec.Get("routes").List() {
		retryable := route.Get("isRetryable")
		if !retryable.True() {
			r.quiet(route.At)
			continue
		}
		d := policyfile.Dependency{Name: name.Text(), Route: route.Get("name").Text(), At: retryable.At, Protocol: "http"}
		d.SetPlace("max_retries", retryable.At)
		r.cannot(&d, "R-2", "", "a service profile does not count the retries of a request: only its timeout and budget bound them")
		r.open(retryable.At, &d, "%s is retried as often as its budget and timeout allow: no count bounds it", d.Name)
		d.Policy.Total = linkerdTimeout
		if r.duration(&d, "total", route.Get("timeout"), &d.Policy.Total); d.Policy.Total == 0 {
			r.refuse(route.Get("timeout").At, "R-3", &d, "total.missing", "timeout %s bounds nothing", route.Get("timeout").Text())
		}
		d.Policy.PerAttempt = d.Policy.Total
		d.Lacks = append(d.Lacks, "per_attempt") // it has no timeout for one
		d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0}}
		if path := route.Get("condition").Get("pathRegex").Text(); grpcPath.MatchString(path) {
			d.Protocol, d.Policy.Kind = "grpc", forbear.GRPC // always a POST, whose method says nothing
			r.grpcWrites(&d, grpcName{method: path[strings.LastIndexByte(path, '/')+1:]}, retryable.At)
		} else if !profileMethodBound(route.Get("condition")) {
			r.refuse(retryable.At, "R-6", &d, "methods", "isRetryable repeats POST, with or without an Idempotency-Key: limit its condition to idempotent methods")
		}
		r.profileBudget(&d, spec.Get("retryBudget"))
		r.linkerdLimits(&d)
		r.add(d)
	}
}

// grpcPath matches the pattern of a gRPC method, as linkerd profile --proto writes it.
var grpcPath = regexp.MustCompile(`^/(\w+\\?\.)+\w+/\w+$`)

// profileMethodBound reports whether a condition lets idempotent methods through
// alone. What it negates is not understood, and counts as any method.
func profileMethodBound(n *tree.Node) bool {
	if idempotent(n.Get("method").Text()) {
		return true
	}
	if slices.ContainsFunc(n.Get("all").List(), profileMethodBound) {
		return true
	}
	some := n.Get("any").List()
	return len(some) > 0 && !slices.ContainsFunc(some, func(c *tree.Node) bool { return !profileMethodBound(c) })
}

// profileBudget reads the budget: a share, and retries per second that are allowed
// whatever the share says.
func (r *reader) profileBudget(d *policyfile.Dependency, n *tree.Node) {
	floor, at, how := linkerdFloor, d.At, ", the default"
	d.Policy.Budget.Window = linkerdWindow
	d.SetPlace("budget.window", placed(n, d.At))
	r.duration(d, "budget.window", n.Get("ttl"), &d.Policy.Budget.Window)
	if n != nil {
		at = n.At
		d.SetPlace("budget", n.At)
		r.keys(n, d, "retryRatio", "minRetriesPerSecond", "ttl")
		share := given(n.Get("retryRatio"))
		if v, ok := share.Number(); ok {
			d.SetPlace("budget.ratio", share.At)
			d.Policy.Budget.Ratio = min(v, 1)
		} else if share != nil {
			d.Lacks = append(d.Lacks, "budget")
			r.unjudged(share.At, d.Name, "%s: %q is not a number, so the budget's share is unknown", d.Name, share.Text())
		}
		if v, ok := n.Get("minRetriesPerSecond").Number(); ok {
			floor, at, how = v, n.Get("minRetriesPerSecond").At, ""
		}
	}
	r.rate(d, floor, at, fmt.Sprintf("minRetriesPerSecond is %g%s", floor, how), "0")
}

// rate judges the retries a second that are allowed whatever a budget's share says.
// what says it in the words of the file, and write is what may be written instead.
func (r *reader) rate(d *policyfile.Dependency, second float64, at policyfile.Position, what, write string) {
	window := second * budget.DefaultWindow.Seconds()
	d.Policy.Budget.MinRetries = int(min(math.Ceil(second*cmp.Or(d.Policy.Budget.Window, budget.DefaultWindow).Seconds()), math.MaxInt16))
	if window > budget.MaxMinRetries {
		r.once(at, "R-7", d, "budget.min_retries", "%s: up to %g retries in 30s are allowed whatever the share, where the standard allows %d: set %s", what, window, budget.MaxMinRetries, write)
	}
}
