package foreign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// istioHost is a host as a resource names it. A name without a dot belongs to the
// namespace of the resource; where the file says none, that may be any.
type istioHost struct{ name, namespace string }

func hostIn(name, namespace string) istioHost {
	name = strings.TrimSuffix(strings.ToLower(name), ".cluster.local")
	if short, ok := strings.CutSuffix(name, ".svc"); ok {
		if service, in, ok := strings.Cut(short, "."); ok {
			return istioHost{service, in}
		}
	}
	if strings.Contains(name, ".") {
		return istioHost{name: name}
	}
	return istioHost{name, namespace}
}

// service is the host's full name inside of the cluster, or "" for one that is not
// known to be there.
func (h istioHost) service() string {
	if h.namespace == "" {
		return ""
	}
	return h.name + "." + h.namespace + ".svc"
}

// same reports whether two names may mean one host.
func (h istioHost) same(other istioHost) bool {
	return h.name == other.name && (h.namespace == other.namespace || !strings.Contains(h.name, ".") && (h.namespace == "" || other.namespace == ""))
}

// covers reports whether a wildcard, such as "*.payments.svc.cluster.local", means a host.
func covers(wildcard string, host istioHost) bool {
	suffix, ok := strings.CutPrefix(strings.TrimSuffix(strings.ToLower(wildcard), ".cluster.local"), "*")
	return ok && (suffix == "" || host.service() != "" && strings.HasSuffix(host.service(), suffix) || strings.HasSuffix(host.name, suffix))
}

// find returns the DestinationRule of a host: one that names it before a wildcard, and of
// several the closest. several says that it cannot be told which of them is meant.
func (m *istioReader) find(name, namespace string) (found *tree.Node, several bool) {
	host := hostIn(name, namespace)
	means := func(all []entry, fits func(written string, rule *tree.Node) bool) (some []entry) {
		for _, e := range all {
			if fits(e.node.Get("spec").Get("host").Text(), e.node) {
				some = append(some, e)
			}
		}
		return some
	}
	named := means(m.rules[host.name], func(written string, rule *tree.Node) bool { return hostIn(written, namespaceOf(rule)).same(host) })
	if len(named) == 0 {
		named = means(m.rules["*"], func(written string, _ *tree.Node) bool { return covers(written, host) })
	}
	return closest(m.part, named)
}

// rule reads what the DestinationRule says about budget and TLS, for each subset that
// a route goes to, and returns its spec.
func (m *istioReader) rule(d *policyfile.Dependency, to []*tree.Node, namespace string, at policyfile.Position) (spec *tree.Node) {
	rule, several := m.find(d.Name, namespace)
	if rule == nil {
		d.Lacks = append(d.Lacks, "budget")
		if several {
			m.unjudged(at, d.Name, "there are several DestinationRules for %s: its retry budget and its TLS are not judged", d.Name)
			return nil
		}
		if m.told.first(at.File, d.Name, d.Service) {
			m.unjudged(at, d.Name, "no DestinationRule for %s in these files: its retry budget and its TLS are not judged", d.Name)
		}
		return nil
	}
	m.joined[rule] = true
	for _, t := range to {
		m.subset(d, rule.Get("spec"), t.Get("destination"))
	}
	return rule.Get("spec")
}

// otherRules judges the certificates of rules by themselves: a host has them without a
// VirtualService, and where its routes do not retry.
func (m *istioReader) otherRules() {
	for part := range m.each() {
		rule := part.Root
		if rule.Get("kind").Text() != "DestinationRule" || m.joined[rule] {
			continue
		}
		spec := rule.Get("spec")
		d := policyfile.Dependency{Name: cmp.Or(spec.Get("host").Text(), "unnamed"), At: rule.At}
		policies := []*tree.Node{spec.Get("trafficPolicy")}
		for _, s := range spec.Get("subsets").List() {
			policies = append(policies, s.Get("trafficPolicy"))
		}
		for _, policy := range policies {
			m.certificates(&d, policy.Get("tls"))
			for _, p := range policy.Get("portLevelSettings").List() {
				m.certificates(&d, p.Get("tls"))
			}
		}
	}
}

// subset reads a rule for one destination. What its subset says comes before what the
// rule says for all.
func (m *istioReader) subset(d *policyfile.Dependency, spec, destination *tree.Node) {
	policies := []*tree.Node{spec.Get("trafficPolicy")}
	for _, s := range spec.Get("subsets").List() {
		if name := s.Get("name").Text(); name != "" && name == destination.Get("subset").Text() {
			policies = slices.Insert(policies, 0, s.Get("trafficPolicy"))
		}
	}
	m.tls(d, policies, destination.Get("port").Get("number").Text())
	for _, policy := range policies {
		if found := policy.Get("retryBudget"); found != nil {
			m.keys(found, d, "percent", "minRetryConcurrency", "budgetInterval")
			m.share(d, found, found.Get("percent"))
			m.floor(d, found.Get("minRetryConcurrency"))
			m.inFlight(d, found.Get("budgetInterval"), "Istio's budgetInterval, from 1.31,")
			if given(found.Get("percent")) == nil && m.told.first(found.At, "percent") {
				// By applyRetryBudget in the tags of these versions.
				m.unjudged(found.At, d.Name, "%s: a retryBudget without percent means 0.2%% instead of 20%% in Istio 1.27, 1.28 before 1.28.6 and 1.29 before 1.29.2: set percent", d.Name)
			}
			return
		}
	}
	d.Lacks = append(d.Lacks, "budget")
	m.once(placed(spec.Get("trafficPolicy"), spec.At), "R-7", d, "budget", "the traffic policy has no retryBudget")
}

// tls looks for a policy that accepts any certificate. Istio verifies by default,
// unlike Envoy by itself. Settings for the port come before those for all ports; a
// destination that names no port may be any of them.
func (m *istioReader) tls(d *policyfile.Dependency, policies []*tree.Node, port string) {
	for _, policy := range policies {
		for _, p := range policy.Get("portLevelSettings").List() {
			if written := p.Get("port").Get("number").Text(); port != "" && written != port {
				continue
			}
			m.certificates(d, p.Get("tls"))
			if port != "" {
				return
			}
		}
		if tls := policy.Get("tls"); tls != nil {
			m.certificates(d, tls)
			return
		}
	}
}

func (m *istioReader) certificates(d *policyfile.Dependency, tls *tree.Node) {
	if v := tls.Get("insecureSkipVerify"); v.True() {
		m.once(v.At, "R-9", d, "tls.verify", "insecureSkipVerify turns certificate verification off")
	}
}

// meshPolicy judges the retries that a mesh gives to every route without its own.
// Those that the files hold are judged with it as well.
func (m *istioReader) meshPolicy(key string, policy *tree.Node) {
	d := policyfile.Dependency{Name: "every service of the mesh", At: policy.At, Protocol: "http", Route: key}
	count, at := m.number(&d, policy.Get("attempts"), 0, policy.At)
	if count == 0 && !d.AtLeast {
		m.quiet(policy.At)
		return
	}
	retries(&d, count, at)
	d.Lacks = append(d.Lacks, "budget")
	if key == inbound {
		m.inbound(&d, policy)
		return
	}
	m.times(&d, nil, policy, policy.At)
	m.when(&d, policy, policy.At, false)
	m.unjudged(policy.At, d.Name, "the retry budgets of services without a DestinationRule are not judged")
	m.add(d)
}

// inbound reads what a sidecar retries at its own service. Without retryOn that is what did
// not reach it (reset-before-request), whatever the method. Nothing but the callers' time-outs
// bounds it.
func (m *istioReader) inbound(d *policyfile.Dependency, policy *tree.Node) {
	d.Policy.Backoff.Base = envoyBase
	m.duration(d, "backoff.base", policy.Get("backoff"), &d.Policy.Backoff.Base)
	d.Policy.Backoff.Cap = saturated(10, d.Policy.Backoff.Base)
	d.Lacks = append(d.Lacks, "total.missing", "per_attempt")
	if on := policy.Get("retryOn"); on != nil && on.Text() != "reset-before-request" {
		m.when(d, policy, policy.At, false)
		m.open(on.At, d, "a sidecar retries here what its callers also retry: their attempts multiply")
	}
	m.add(*d)
}
