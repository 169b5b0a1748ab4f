package foreign

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile"
)

// istioRetries is how often Istio retries a route whose settings leave
// retries out. It is two and not none, which surprises many.
const istioRetries = 2

// istio reads VirtualServices and the DestinationRules beside them. A rule
// is found by its host, as Istio finds it, within this file alone.
func (r *reader) istio(data []byte) error {
	roots, err := r.documents(data)
	if err != nil {
		return err
	}
	rules := map[string]*yaml.Node{}
	for _, root := range roots {
		// The rules come first, since a file may list them in any order.
		if text(get(root, "kind")) == "DestinationRule" {
			spec := get(root, "spec")
			rules[text(get(spec, "host"))] = get(spec, "trafficPolicy")
		}
	}
	for _, root := range roots {
		if text(get(root, "kind")) != "VirtualService" {
			continue
		}
		for _, route := range items(get(get(root, "spec"), "http")) {
			r.istioRoute(resolve(route), rules)
		}
	}
	return nil
}

// istioRoute reads one HTTP route. It is judged by its first destination:
// the others are versions of the same service as a rule.
func (r *reader) istioRoute(n *yaml.Node, rules map[string]*yaml.Node) {
	name := ""
	for _, to := range items(get(n, "route")) {
		if name = text(get(get(to, "destination"), "host")); name != "" {
			break
		}
	}
	if name == "" {
		return // a redirect or a direct response
	}
	d := policyfile.Dependency{Name: name, At: r.place(n), Protocol: "http"}
	policy := get(n, "retries")
	at := d.At
	// Silence means Istio's default of two retries, not none.
	if policy == nil {
		retries(&d, istioRetries, at)
		r.unjudged(at, name, "%s says nothing of retries: Istio's default holds, %d of them unless the mesh says otherwise", name, istioRetries)
	} else {
		at = r.place(policy)
		count, from := float64(istioRetries), policy
		if v := get(policy, "attempts"); v != nil {
			// attempts counts retries in Istio, in spite of its name.
			from = v
			if m, ok := number(v); ok {
				count = min(m, math.MaxInt16)
			}
		}
		retries(&d, int(count), r.place(from))
	}
	if d.Policy.Disabled {
		r.add(d)
		return
	}
	r.istioTimes(&d, n, policy, at)
	if on := get(policy, "retryOn"); on != nil {
		r.conditions(&d, on, nil, istioMethodBound(n))
	}
	r.istioRule(&d, rules[name], at)
	r.add(d)
}

// istioTimes reads the durations. Istio configures Envoy, and Envoy's
// defaults apply, except that a route without a timeout has none.
func (r *reader) istioTimes(d *policyfile.Dependency, n, policy *yaml.Node, at policyfile.Position) {
	d.Policy.Backoff.Base = envoyBase
	r.duration(d, "backoff.base", get(policy, "backoff"), &d.Policy.Backoff.Base)
	// Istio sets no maximum, so that Envoy's applies.
	d.Policy.Backoff.Cap = 10 * d.Policy.Backoff.Base
	if r.duration(d, "total", get(n, "timeout"), &d.Policy.Total); d.Policy.Total == 0 {
		r.refuse(at, "R-3", d, "total.missing", "no timeout bounds the call and its retries")
	}
	d.Policy.PerAttempt = d.Policy.Total
	r.duration(d, "per_attempt", get(policy, "perTryTimeout"), &d.Policy.PerAttempt)
}

// istioMethodBound reports whether every match of a route names an
// idempotent method. A single match without a method lets any of them
// through.
func istioMethodBound(route *yaml.Node) bool {
	matches := items(get(route, "match"))
	for _, m := range matches {
		exact := text(get(get(m, "method"), "exact"))
		if exact == "" || strings.Contains("POST PATCH", exact) {
			return false
		}
	}
	return len(matches) > 0
}

// istioRule reads what the DestinationRule says about budget and TLS.
func (r *reader) istioRule(d *policyfile.Dependency, rule *yaml.Node, at policyfile.Position) {
	if rule == nil {
		r.unjudged(at, d.Name, "no DestinationRule for %s in this file: its retry budget and its TLS are not judged", d.Name)
		return
	}
	// Istio verifies by default, unlike Envoy by itself.
	if v := get(get(rule, "tls"), "insecureSkipVerify"); text(v) == "true" {
		r.refuse(r.place(v), "R-9", d, "tls.verify", "insecureSkipVerify switches the verification of certificates off")
	}
	budget := get(rule, "retryBudget")
	if budget == nil {
		r.refuse(r.place(rule), "R-7", d, "budget", "the traffic policy has no retryBudget")
		return
	}
	r.share(d, budget, get(budget, "percent"))
}
