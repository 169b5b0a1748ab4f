package foreign

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// A route that says nothing of retries has these, unless the mesh has a
// defaultHttpRetryPolicy (VirtualService, HTTPRetry). Before Istio 1.24 the conditions
// included a 503 of any method; since then they do not.
const (
	istioRetries = 2
	istioRetryOn = "connect-failure,refused-stream,unavailable,cancelled"
	istioConnect = 10 * time.Second
)

// istioKinds are those of Istio's resources, of which only the first two say anything of
// retries.
var istioKinds = []string{"VirtualService", "DestinationRule", "Gateway", "ProxyConfig", "ServiceEntry", "Sidecar", "WorkloadEntry", "WorkloadGroup"}

// claimsIstio knows Istio's resources by their group, and the settings of a mesh by
// the default that they have for retries, wherever they stand: in the operator's
// resource, in the values of a chart, or in the ConfigMap istio.
func claimsIstio(n *tree.Node) bool {
	return resource(n, "networking.istio.io", istioKinds...) && n.Has("spec") || n.Get(outbound).Map() || n.Get(inbound).Map()
}

// outbound and inbound are the settings of a mesh that retry what its services call, and, since
// Istio 1.32, what a sidecar hands to its own service.
const (
	outbound = "defaultHttpRetryPolicy"
	inbound  = "defaultInboundHttpRetryPolicy"
)

// ownIstio returns the default in the settings of a mesh, or none for a resource.
func ownIstio(n *tree.Node) (own []*tree.Node) {
	for _, key := range []string{outbound, inbound} {
		if mesh := n.Get(key); mesh != nil && !n.Has("apiVersion") {
			own = append(own, mesh)
		}
	}
	return own
}

// istio reads VirtualServices and the DestinationRules beside them, which may
// stand in other files. A rule is found by its host, as Istio finds it.
func (r *reader) istio() {
	m := &istioReader{reader: r, mesh: named{}, rules: named{}, joined: map[*tree.Node]bool{}}
	for part := range r.each() {
		m.gather(part)
	}
	for part := range r.each() {
		for _, key := range []string{outbound, inbound} {
			if mesh := part.Root.Get(key); mesh != nil {
				m.meshPolicy(key, mesh)
			}
		}
		if part.Root.Get("kind").Text() == "VirtualService" {
			m.revision = part.Root.Get("metadata").Get("labels").Get("istio.io/rev").Text()
			m.service(part.Root)
			m.revision = ""
		}
	}
	m.otherRules()
}

// istioReader reads the files of Istio.
type istioReader struct {
	*reader
	mesh  named // the policies of meshes, under ""
	rules named // the DestinationRules, by host; those of wildcards under "*"
	// joined are the rules that a route which retries is judged with.
	joined map[*tree.Node]bool
	// revision is what the VirtualService that is read says of the Istio that reads it, or "".
	revision string
}

// gather records what the resources of other parts may name.
func (m *istioReader) gather(part *Part) {
	n := part.Root
	m.mesh.add(part, "", n.Get(outbound))
	if n.Get("kind").Text() == "DestinationRule" {
		host := n.Get("spec").Get("host").Text()
		name := hostIn(host, namespaceOf(n)).name
		if strings.HasPrefix(host, "*") {
			name = "*"
		}
		m.rules.add(part, name, n)
	}
}

// before124 reports whether a revision of Istio's is named after a version before 1.24, as in
// 1-23-4. The switch EXCLUDE_UNSAFE_503_FROM_DEFAULT_RETRY is on since then (pilot.go).
func before124(revision string) bool {
	major, rest, _ := strings.Cut(revision, "-")
	minor, _, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(minor)
	return major == "1" && err == nil && n < 24
}

func namespaceOf(root *tree.Node) string { return root.Get("metadata").Get("namespace").Text() }

// service reads the routes of one VirtualService. Those of TCP and TLS do not retry.
func (m *istioReader) service(root *tree.Node) {
	spec := root.Get("spec")
	for _, route := range slices.Concat(spec.Get("tcp").List(), spec.Get("tls").List()) {
		m.quiet(route.At)
	}
	for _, route := range spec.Get("http").List() {
		to := route.Get("route").List()
		switch delegate := route.Get("delegate"); {
		case delegate != nil:
			m.unjudged(delegate.At, "", "the VirtualService %s, to which this route delegates, is judged without this route's settings", delegate.Get("name").Text())
		case len(to) == 0:
			m.quiet(route.At) // a redirect or a direct response
		}
		for _, host := range hostsOf(to) {
			m.route(&istioRoute{node: route, resource: root}, host)
		}
	}
}

// istioRoute is a route of a VirtualService with what decides its retries.
type istioRoute struct {
	node, resource *tree.Node
	silent         bool // it says nothing of retries, and the mesh does
}

// hostsOf groups the destinations of a route by their hosts: subsets are versions of
// one service.
func hostsOf(to []*tree.Node) (hosts [][]*tree.Node) {
	for _, t := range to {
		name := t.Get("destination").Get("host").Text()
		i := slices.IndexFunc(hosts, func(h []*tree.Node) bool { return h[0].Get("destination").Get("host").Text() == name })
		if i < 0 {
			hosts = append(hosts, []*tree.Node{t})
			continue
		}
		hosts[i] = append(hosts[i], t)
	}
	return hosts
}

// route reads an HTTP route for one of the hosts that it goes to, each of which has a
// DestinationRule of its own.
func (m *istioReader) route(x *istioRoute, to []*tree.Node) {
	name := cmp.Or(to[0].Get("destination").Get("host").Text(), "unnamed")
	d := policyfile.Dependency{
		Name: name, At: x.node.At, Protocol: "http", Route: x.identity(),
		Service: hostIn(name, namespaceOf(x.resource)).service(),
	}
	policy := given(x.node.Get("retries"))
	if policy == nil {
		var several bool
		if policy, several = m.mesh.in(m.part, ""); several {
			m.open(d.At, &d, "%s sets no retries, and there are several defaultHttpRetryPolicy: which one applies is unknown", d.Name)
		}
		x.silent = policy != nil
	}
	m.count(&d, policy)
	if asks := istioAsks(append([]*tree.Node{x.node}, to...)...); asks.Key != "" {
		m.open(d.At, &d, asksOpen, d.Name, asks.Key)
		m.asked(&d, asks.Key, asks.Value)
	}
	if d.Policy.Disabled && !d.AtLeast {
		m.duration(&d, "total", given(x.node.Get("timeout")), &d.Longest)
		m.add(d)
		return
	}
	at := d.At
	if policy != nil && !x.silent {
		at = policy.At
	}
	m.times(&d, given(x.node.Get("timeout")), policy, at)
	words := m.when(&d, policy, at, x.bound())
	rule := m.rule(&d, to, namespaceOf(x.resource), at)
	connects(&d, words, policy.Get("perTryTimeout"), rule.Fold("trafficPolicy", "connectionPool", "tcp", "connectTimeout"), istioConnect)
	m.add(d)
}

// count reads the number of retries. Istio counts retries by attempts, in spite of its name,
// and no policy at all means two of them; one without attempts has none, since what
// is absent is zero.
func (m *istioReader) count(d *policyfile.Dependency, policy *tree.Node) {
	attempts := policy.Get("attempts")
	count, at := m.number(d, attempts, 0, placed(policy, d.At))
	switch {
	case policy == nil:
		count = istioRetries
		m.unjudged(d.At, d.Name, "%s sets no retries, so Istio's default applies: %d unless the mesh says otherwise", d.Name, istioRetries)
	case attempts == nil:
		m.unjudged(policy.At, d.Name, "retries without attempts means none: Istio reads a missing number as 0")
	}
	retries(d, min(count, math.MaxInt16), at)
}

// times reads the durations. Istio configures Envoy, and Envoy's
// defaults apply, except that a route without a timeout has none.
func (m *istioReader) times(d *policyfile.Dependency, timeout, policy *tree.Node, at policyfile.Position) {
	d.Policy.Backoff.Base = envoyBase
	m.duration(d, "backoff.base", policy.Get("backoff"), &d.Policy.Backoff.Base)
	// Istio sets no maximum, so that Envoy's applies.
	d.Policy.Backoff.Cap = saturated(10, d.Policy.Backoff.Base)
	if m.duration(d, "total", timeout, &d.Policy.Total); d.Policy.Total == 0 {
		m.refuse(at, "R-3", d, "total.missing", "no timeout bounds the call and its retries")
	}
	d.Policy.PerAttempt = d.Policy.Total
	m.attempt(d, policy.Get("perTryTimeout"))
}

// when judges the conditions, and returns them. Numbers among them are statuses, by which
// Istio adds the word that lets Envoy read them.
func (m *istioReader) when(d *policyfile.Dependency, policy *tree.Node, at policyfile.Position, bound bool) (words []string) {
	on := policy.Get("retryOn")
	at = placed(on, at)
	codes := &tree.Node{Kind: tree.List}
	for word := range strings.SplitSeq(cmp.Or(on.Text(), istioRetryOn), ",") {
		word = strings.TrimSpace(word)
		status, err := strconv.Atoi(word)
		if err == nil && http.StatusText(status) != "" {
			codes.Items = append(codes.Items, &tree.Node{Value: word, At: at})
			continue
		}
		if word != "retriable-status-codes" {
			words = append(words, word)
		}
	}
	if len(codes.Items) > 0 {
		words = append(words, "retriable-status-codes")
	}
	if on == nil && !bound {
		// The words are not in the file, so that the finding says what they do.
		m.refuse(at, "R-6", d, "methods", "Istio's default retryOn repeats gRPC calls that ended unavailable or cancelled, and before 1.24 any POST after a 503: set retryOn, or match on the method").Uncertain = !before124(m.revision)
		bound = true
	}
	if m.conditions(d, &tree.Node{Value: strings.Join(words, ","), At: at}, codes, bound) {
		m.cannot(d, "R-5", "", "Istio cannot make Envoy honor Retry-After, except by an EnvoyFilter")
	}
	return words
}
