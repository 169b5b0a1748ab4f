package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// consulRetries is Consul's default of NumRetries, where a condition is given.
const consulRetries = 1

// consulGroup is the group of Consul's resources.
const consulGroup = "consul.hashicorp.com"

// consulKinds are the configuration entries whose routes may retry.
var consulKinds = []string{"service-router", "http-route"}

// claimsConsul knows the configuration entries, and the resources that stand for one.
func claimsConsul(n *tree.Node) bool {
	return slices.Contains(consulKinds, n.Fold("kind").Text()) || n.Has("spec") && resource(n, consulGroup, "ServiceRouter", "RouteRetryFilter")
}

// consul reads service routers and the routes of API gateways, whose keys may be written
// in camel or snake case. Consul hands the settings on to Envoy.
func (r *reader) consul() {
	for _, part := range r.parts {
		n := part.Root
		name := n.Fold("name").Text()
		if spec := n.Get("spec"); spec != nil {
			name = n.Get("metadata").Get("name").Text()
			if n.Get("kind").Text() == "RouteRetryFilter" {
				// The routes that it is a filter of are not looked for.
				d := policyfile.Dependency{Name: name, At: spec.At, Protocol: "http"}
				r.consulUnit(d, consulRoute{retry: spec})
				continue
			}
			n = spec
		}
		for _, rule := range blocks(n.Fold("rules")) {
			r.consulRule(name, rule)
		}
		for _, route := range blocks(n.Fold("routes")) {
			destination := route.Fold("destination")
			match := route.Fold("match", "http")
			d := policyfile.Dependency{
				Name: cmp.Or(destination.Fold("service").Text(), name, "unnamed"), Route: strings.TrimSpace(name + " " + gist(match)),
				At: route.At, Protocol: "http",
			}
			r.consulUnit(d, consulRoute{retry: destination, timeout: destination, methods: match.Fold("methods").List()})
		}
	}
}

// consulRule reads a rule of an http-route, whose filters are for all of its services.
func (r *reader) consulRule(name string, rule *tree.Node) {
	filters := rule.Fold("filters")
	route := consulRoute{retry: filters.Fold("retryFilter"), timeout: filters.Fold("timeoutFilter")}
	matches := blocks(rule.Fold("matches"))
	for _, match := range matches {
		if method := match.Fold("method"); method != nil {
			route.methods = append(route.methods, method)
		}
	}
	if len(route.methods) < len(matches) {
		route.methods = nil // one match takes any method
	}
	for _, service := range blocks(rule.Fold("services")) {
		if own := service.Fold("filters").Fold("retryFilter"); own != nil {
			r.unjudged(own.At, name, "%s: Consul does not read a RetryFilter of a service, but that of its rule", name)
		}
		r.consulUnit(policyfile.Dependency{
			Name: cmp.Or(service.Fold("name").Text(), name, "unnamed"), Route: strings.TrimSpace(name + " " + gist(rule.Fold("matches"))),
			At: rule.At, Protocol: "http",
		}, route)
	}
}

// blocks lists what stands in a list, or by itself where a list is expected, as a block
// of HCL does.
func blocks(n *tree.Node) []*tree.Node {
	if n.Map() {
		return []*tree.Node{n}
	}
	return n.List()
}

// consulRoute is what sets the retries of a route.
type consulRoute struct {
	retry, timeout *tree.Node
	methods        []*tree.Node // none stands for all
}

// consulUnit judges one route to a service. It retries under the conditions that it
// names: a number alone retries nothing.
func (r *reader) consulUnit(d policyfile.Dependency, route consulRoute) {
	n := route.retry
	count, listed, codes, connect := n.Fold("numRetries"), n.Fold("retryOn"), n.Fold("retryOnStatusCodes"), n.Fold("retryOnConnectFailure")
	first := cmp.Or(count, listed, codes, connect)
	if first == nil {
		r.quiet(d.At)
		return
	}
	d.At = first.At
	most, at := r.number(&d, count, consulRetries, d.At)
	if most == 0 {
		most = consulRetries // which none at all means
	}
	on := words(listed, d.At)
	if connect.True() && on.Value == "" {
		on = &tree.Node{Value: "connect-failure", At: connect.At}
	}
	if on.Value == "" && len(codes.List()) == 0 {
		retries(&d, 0, at)
		r.consulTotal(&d, route.timeout.Fold("requestTimeout"))
		r.unjudged(at, d.Name, "%s has a number of retries and no condition for them: Consul retries nothing then, and callers may still ask Envoy for retries by a header: write RetryOn, or no number", d.Name)
		r.add(d)
		return
	}
	retries(&d, most, at)
	r.consulTimes(&d, route.timeout.Fold("requestTimeout"))
	if len(codes.List()) > 0 {
		if on.Value == "" {
			on.At = codes.At
		}
		on.Value = strings.TrimPrefix(on.Value+",retriable-status-codes", ",")
	}
	bound := len(route.methods) > 0 && !slices.ContainsFunc(route.methods, func(m *tree.Node) bool { return !idempotent(m.Text()) })
	if r.conditions(&d, on, codes, bound) {
		r.cannot(&d, "R-5", "", "Consul has no setting by which Retry-After is heeded")
	}
	r.cannot(&d, "R-7", "budget", "Consul has no retry budget: Envoy bounds retries by a number of concurrent ones, whatever the traffic")
	r.add(d)
}

// consulTimes reads the durations.
func (r *reader) consulTimes(d *policyfile.Dependency, timeout *tree.Node) {
	r.consulTotal(d, timeout)
	r.envoyWaits(d, nil, nil, nil, d.At)
	r.cannot(d, "INTG-STD-035", "per_attempt", "Consul has no timeout for one attempt: the first that hangs leaves no time for a retry")
}

// consulTotal reads RequestTimeout, which covers all attempts. Without one Envoy's
// default holds, and a negative one switches it off.
func (r *reader) consulTotal(d *policyfile.Dependency, timeout *tree.Node) {
	total := envoyTimeout
	r.time(d, "total", timeout, consulTime, &total)
	switch {
	case total > 0:
		d.Policy.Total = total
	case total < 0 && !d.Policy.Disabled:
		r.refuse(timeout.At, "R-3", d, "total.missing", "RequestTimeout %s switches the timeout off: nothing bounds the call and its retries", timeout.Text())
	case total == 0:
		d.Policy.Total = envoyTimeout
	}
}

// consulTime reads a duration, which JSON may have in nanoseconds.
func consulTime(n *tree.Node) (time.Duration, bool) {
	if v, ok := n.Number(); ok {
		return saturated(max(v, -1), 1), true
	}
	return n.Span()
}
