package foreign

import (
	"math"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"

	"github.com/forbear-go/forbear/policyfile"
)

// istioRetries is how often Istio retries a route whose settings leave
// retries out. It is two and not none, which surprises many.
const istioRetries = 2

// claimsIstio knows Istio's resources by their group. EnvoyFilter is Envoy's.
func claimsIstio(n *tree.Node) bool {
	return strings.HasPrefix(n.Get("apiVersion").Text(), "networking.istio.io/") && n.Get("kind").Text() != "EnvoyFilter" && n.Has("spec")
}

// istio reads VirtualServices and the DestinationRules beside them, which may
// stand in other files. A rule is found by its host, as Istio finds it.
func (r *reader) istio() {
	rules := named{}
	for _, part := range r.parts {
		if spec := part.Root.Get("spec"); part.Root.Get("kind").Text() == "DestinationRule" {
			rules.add(spec.Get("host").Text(), spec.Get("trafficPolicy"))
		}
	}
	for _, part := range r.parts {
		if part.Root.Get("kind").Text() != "VirtualService" {
			continue
		}
		for _, route := range part.Root.Get("spec").Get("http").List() {
			r.istioRoute(route, rules)
		}
	}
}

// istioRoute reads one HTTP route. It is judged by its first destination:
// the others are versions of the same service as a rule.
func (r *reader) istioRoute(n *tree.Node, rules named) {
	name := ""
	for _, to := range n.Get("route").List() {
		if name = to.Get("destination").Get("host").Text(); name != "" {
			break
		}
	}
	if name == "" {
		return // a redirect or a direct response
	}
	d := policyfile.Dependency{Name: name, At: n.At, Protocol: "http"}
	policy := n.Get("retries")
	at := d.At
	// Silence means Istio's default of two retries, not none.
	if policy == nil {
		retries(&d, istioRetries, at)
		r.unjudged(at, name, "%s says nothing of retries: Istio's default holds, %d of them unless the mesh says otherwise", name, istioRetries)
	} else {
		at = policy.At
		count, from := float64(istioRetries), policy
		if v := policy.Get("attempts"); v != nil {
			// attempts counts retries in Istio, in spite of its name.
			from = v
			if m, ok := v.Number(); ok {
				count = min(m, math.MaxInt16)
			}
		}
		retries(&d, int(count), from.At)
	}
	if d.Policy.Disabled {
		r.add(d)
		return
	}
	r.istioTimes(&d, n, policy, at)
	if on := policy.Get("retryOn"); on != nil {
		r.conditions(&d, on, nil, istioMethodBound(n))
	}
	rule, _ := rules.in(d.At.File, name)
	r.istioRule(&d, rule, at)
	r.add(d)
}

// istioTimes reads the durations. Istio configures Envoy, and Envoy's
// defaults apply, except that a route without a timeout has none.
func (r *reader) istioTimes(d *policyfile.Dependency, n, policy *tree.Node, at policyfile.Position) {
	d.Policy.Backoff.Base = envoyBase
	r.duration(d, "backoff.base", policy.Get("backoff"), &d.Policy.Backoff.Base)
	// Istio sets no maximum, so that Envoy's applies.
	d.Policy.Backoff.Cap = 10 * d.Policy.Backoff.Base
	if r.duration(d, "total", n.Get("timeout"), &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(at, "R-3", d, "total.missing", "no timeout bounds the call and its retries")
	}
	d.Policy.PerAttempt = d.Policy.Total
	r.duration(d, "per_attempt", policy.Get("perTryTimeout"), &d.Policy.PerAttempt)
}

// istioMethodBound reports whether every match of a route names an
// idempotent method. A single match without a method lets any of them
// through.
func istioMethodBound(route *tree.Node) bool {
	matches := route.Get("match").List()
	for _, m := range matches {
		exact := m.Get("method").Get("exact").Text()
		if exact == "" || strings.Contains("POST PATCH", exact) {
			return false
		}
	}
	return len(matches) > 0
}

// istioRule reads what the DestinationRule says about budget and TLS.
func (r *reader) istioRule(d *policyfile.Dependency, rule *tree.Node, at policyfile.Position) {
	if rule == nil {
		r.unjudged(at, d.Name, "no DestinationRule for %s in these files: its retry budget and its TLS are not judged", d.Name)
		return
	}
	// Istio verifies by default, unlike Envoy by itself.
	if v := rule.Get("tls").Get("insecureSkipVerify"); v.Text() == "true" {
		r.refuse(v.At, "R-9", d, "tls.verify", "insecureSkipVerify switches the verification of certificates off")
	}
	budget := rule.Get("retryBudget")
	if budget == nil {
		r.refuse(rule.At, "R-7", d, "budget", "the traffic policy has no retryBudget")
		return
	}
	r.share(d, budget, budget.Get("percent"))
}
