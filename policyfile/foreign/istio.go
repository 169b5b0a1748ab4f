package foreign

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// A route that says nothing of retries has these, unless the mesh has a
// defaultHttpRetryPolicy (VirtualService, HTTPRetry). Before Istio 1.24 the conditions
// included a 503 of any method; since then they do not.
const (
	istioRetries = 2
	istioRetryOn = "connect-failure,refused-stream,unavailable,cancelled"
)

// istioKinds are those of Istio's resources, of which only the first two say anything of
// retries. EnvoyFilter is Envoy's.
var istioKinds = []string{"VirtualService", "DestinationRule", "Gateway", "ProxyConfig", "ServiceEntry", "Sidecar", "WorkloadEntry", "WorkloadGroup"}

// claimsIstio knows Istio's resources by their group, and the settings of a mesh by
// the default that they have for retries, wherever they stand: in the operator's
// resource, in the values of a chart, or in the ConfigMap istio.
func claimsIstio(n *tree.Node) bool {
	return resource(n, "networking.istio.io", istioKinds...) && n.Has("spec") || n.Get("defaultHttpRetryPolicy").Map()
}

// ownIstio returns the default in the settings of a mesh, or none for a resource.
func ownIstio(n *tree.Node) (own []*tree.Node) {
	if mesh := n.Get("defaultHttpRetryPolicy"); mesh != nil && !n.Has("apiVersion") {
		own = append(own, mesh)
	}
	return own
}

// istio reads VirtualServices and the DestinationRules beside them, which may
// stand in other files. A rule is found by its host, as Istio finds it.
func (r *reader) istio() {
	m := &istioReader{reader: r, mesh: named{}, hosts: named{}, roots: map[*tree.Node]*tree.Node{}, joined: map[*tree.Node]bool{}}
	for _, part := range r.parts {
		if mesh := part.Root.Get("defaultHttpRetryPolicy"); mesh != nil {
			m.mesh.add("", mesh)
		}
		if part.Root.Get("kind").Text() == "DestinationRule" {
			m.rules = append(m.rules, part.Root)
			host := part.Root.Get("spec").Get("host").Text()
			if name := hostIn(host, "").name; strings.HasPrefix(host, "*") {
				m.wild = append(m.wild, part.Root)
			} else {
				m.hosts.add(name, part.Root)
			}
		}
	}
	for _, part := range r.parts {
		m.delegates(part.Root)
	}
	for _, part := range r.parts {
		if mesh := part.Root.Get("defaultHttpRetryPolicy"); mesh != nil {
			m.meshPolicy(mesh)
		}
		if part.Root.Get("kind").Text() == "VirtualService" {
			m.service(part.Root)
		}
	}
	m.otherRules()
}

// istioReader reads the files of Istio.
type istioReader struct {
	*reader
	mesh  named        // the policies of meshes, under ""
	rules []*tree.Node // the DestinationRules
	hosts named        // those of one host, by its name without a namespace
	wild  []*tree.Node // those of all hosts of a pattern
	// joined are the rules that a route which retries is judged with.
	joined map[*tree.Node]bool
	// roots are the routes that delegate to a VirtualService, by its resource: what
	// the delegate leaves out, they say.
	roots map[*tree.Node]*tree.Node
}

// delegates joins the routes of a VirtualService with those that they delegate to.
func (m *istioReader) delegates(root *tree.Node) {
	for _, route := range root.Get("spec").Get("http").List() {
		to := route.Get("delegate")
		if to == nil {
			continue
		}
		namespace := cmp.Or(to.Get("namespace").Text(), namespaceOf(root))
		found := false
		for _, part := range m.parts {
			n := part.Root
			if n.Get("kind").Text() == "VirtualService" && n.Get("metadata").Get("name").Text() == to.Get("name").Text() && namespaceOf(n) == namespace {
				m.roots[n], found = route, true
			}
		}
		if !found {
			m.unjudged(to.At, "", "the VirtualService %s, to which this route delegates, is not in these files", to.Get("name").Text())
		}
	}
}

func namespaceOf(root *tree.Node) string { return root.Get("metadata").Get("namespace").Text() }

// service reads the routes of one VirtualService. Those of TCP and TLS do not retry.
func (m *istioReader) service(root *tree.Node) {
	spec := root.Get("spec")
	for _, route := range append(spec.Get("tcp").List(), spec.Get("tls").List()...) {
		m.quiet(route.At)
	}
	for _, route := range spec.Get("http").List() {
		x := &istioRoute{node: route, above: m.roots[root], resource: root}
		to := route.Get("route").List()
		if len(to) == 0 && route.Get("delegate") == nil {
			m.quiet(route.At) // a redirect or a direct response
		}
		for _, host := range hostsOf(to) {
			m.route(x, host)
		}
	}
}

// istioRoute is a route of a VirtualService with what decides its retries.
type istioRoute struct {
	node, resource *tree.Node
	above          *tree.Node // the route that delegates to it, or nil
	silent         bool       // it says nothing of retries, and the mesh does
}

// says returns a field of the route, or of the one above it.
func (x *istioRoute) says(key string) *tree.Node {
	return cmp.Or(given(x.node.Get(key)), given(x.above.Get(key)))
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
	policy := x.says("retries")
	if policy == nil {
		policy, _ = m.mesh.in(d.At.File, "")
		x.silent = policy != nil
	}
	asked := istioHeaders(append([]*tree.Node{x.node}, to...)...)
	m.count(&d, policy, asked)
	if d.Policy.Disabled && !d.AtLeast {
		m.add(d)
		return
	}
	at := d.At
	if policy != nil && !x.silent {
		at = policy.At
	}
	m.times(&d, x.says("timeout"), policy, at)
	m.when(&d, policy, asked, at, x.bound())
	m.rule(&d, to, namespaceOf(x.resource), at)
	m.add(d)
}

// count reads the number of retries. Istio counts retries by attempts, in spite of its name,
// and no policy at all means two of them; one without attempts has none, since what
// is absent is zero.
func (m *istioReader) count(d *policyfile.Dependency, policy *tree.Node, asked envoyHeaders) {
	attempts := policy.Get("attempts")
	count, at := m.number(d, attempts, 0, placed(policy, d.At))
	switch {
	case policy == nil:
		count = istioRetries
		m.unjudged(d.At, d.Name, "%s says nothing of retries: Istio's default holds, %d of them unless the mesh says otherwise", d.Name, istioRetries)
	case attempts == nil:
		m.unjudged(policy.At, d.Name, "retries without attempts are none: Istio takes what is absent as 0")
	}
	// A header that the route adds turns retries on where there is no policy, too.
	if asked.most != nil && (count > 0 || asked.on != nil) {
		count, at = m.number(d, asked.most, count, at)
	} else if asked.on != nil && count == 0 {
		count, at = envoyRetries, asked.on.At
	}
	retries(d, min(count, math.MaxInt16), at)
}

// times reads the durations. Istio configures Envoy, and Envoy's
// defaults apply, except that a route without a timeout has none.
func (m *istioReader) times(d *policyfile.Dependency, timeout, policy *tree.Node, at policyfile.Position) {
	d.Policy.Backoff.Base = envoyBase
	m.duration(d, "backoff.base", policy.Get("backoff"), &d.Policy.Backoff.Base)
	// Istio sets no maximum, so that Envoy's applies.
	d.Policy.Backoff.Cap = 10 * d.Policy.Backoff.Base
	if m.duration(d, "total", timeout, &d.Policy.Total); d.Policy.Total == 0 {
		m.refuse(at, "R-3", d, "total.missing", "no timeout bounds the call and its retries")
	}
	d.Policy.PerAttempt = d.Policy.Total
	m.duration(d, "per_attempt", policy.Get("perTryTimeout"), &d.Policy.PerAttempt)
}

// when judges the conditions. Numbers among them are statuses, by which Istio adds
// the word that lets Envoy read them.
func (m *istioReader) when(d *policyfile.Dependency, policy *tree.Node, asked envoyHeaders, at policyfile.Position, bound bool) {
	on := policy.Get("retryOn")
	at = placed(on, at)
	codes := &tree.Node{Kind: tree.List, Items: asked.codes}
	var words []string
	for word := range strings.SplitSeq(cmp.Or(on.Text(), istioRetryOn)+asked.words, ",") {
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
		m.refuse(at, "R-6", d, "methods", "Istio's default retryOn repeats calls of gRPC that ended unavailable or cancelled, and before 1.24 any POST after a 503: write retryOn, or match on the method")
		bound = true
	}
	if m.conditions(d, &tree.Node{Value: strings.Join(words, ","), At: at}, codes, bound) {
		m.cannot(d, "R-5", "", "Istio has no setting by which Envoy heeds Retry-After, short of an EnvoyFilter")
	}
}
