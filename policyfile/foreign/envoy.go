package foreign

import (
	"cmp"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// claimsEnvoy knows the parts of Envoy's configuration by the keys that they cannot
// do without: a bootstrap, a dump, resources of xDS, or a cluster by itself.
func claimsEnvoy(n *tree.Node) bool {
	of := func(kind string) bool {
		return strings.HasPrefix(n.Get("@type").Text(), "type.googleapis.com/envoy."+kind)
	}
	switch {
	case of("config."), of("admin."), of("extensions."), of("api."):
		return true
	case n.Get("static_resources").Map(), n.Fold("dynamic_route_configs") != nil, n.Fold("static_route_configs") != nil:
		return true
	case n.Fold("dynamic_resources").Map() && (n.Has("node") || n.Has("admin")):
		return true
	case n.Fold("virtual_hosts") != nil && n.Fold("virtual_hosts").Kind == tree.List, n.Fold("filter_chains").List() != nil:
		return true
	case n.Has("name") && (n.Fold("load_assignment").Map() || n.Fold("eds_cluster_config").Map() || n.Fold("connect_timeout") != nil && n.Fold("lb_policy") != nil):
		return true
	}
	return false
}

// envoy reads routes and clusters, wherever in the file they are: a
// bootstrap or a dump of one of its parts. Envoy draws its waits
// with full jitter, as R-1 asks, so that jitter needs no finding.
//
// Clusters are gathered first, because a route names one that may stand
// below it, or in another file.
func (r *reader) envoy() {
	e := &envoyReader{reader: r, clusters: r.envoyClusters(), seen: map[*tree.Node]bool{}, hosts: map[*tree.Node]string{}}
	for part := range r.each() {
		part.Root.Walk(func(n *tree.Node) bool { e.node(n); return true })
	}
	for part := range r.each() {
		part.Root.Walk(func(n *tree.Node) bool { e.others(n); return true })
	}
	e.otherClusters()
}

// envoyReader reads the files of Envoy.
type envoyReader struct {
	*reader
	clusters named
	// seen holds the virtual hosts, the retry policies and the clusters' TLS that have been
	// read.
	seen  map[*tree.Node]bool
	hosts map[*tree.Node]string // behind clusters, to each of which thousands of routes may go
}

// node reads what retries at n: the virtual hosts of a route configuration, or one by
// itself, as VHDS sends it.
func (e *envoyReader) node(n *tree.Node) {
	for _, host := range n.Fold("virtual_hosts").List() {
		e.host(host, n)
	}
	if n.Get("domains") != nil && n.Get("routes") != nil {
		e.host(n, nil)
	}
	if v := n.Fold("max_connect_attempts"); v != nil {
		e.unjudged(v.At, "", "the connection attempts of a TCP proxy, and their waits, are not judged")
	}
}

// host reads the routes of a virtual host.
func (e *envoyReader) host(host, config *tree.Node) {
	if e.seen[host] {
		return
	}
	e.seen[host] = true
	e.seen[policyOf(host)] = true // of no effect where every route has its own
	for _, route := range host.Get("routes").List() {
		e.route(&envoyRoute{node: route, action: route.Get("route"), host: host, scopes: []*tree.Node{route, host, config}})
	}
}

// envoyRoute is a route with what decides its retries.
type envoyRoute struct {
	node, action, host *tree.Node
	// scopes are the route, its virtual host and its configuration: all of them may
	// add headers to the request.
	scopes []*tree.Node
	policy *tree.Node
	// asks is a header, with key and value, that they add to ask Envoy for retries, or nil.
	asks *tree.Node
}

// policyOf returns the retry policy of a route's action or of a virtual host. The
// typed form may hold the same message.
func policyOf(n *tree.Node) *tree.Node {
	return cmp.Or(given(n.Fold("retry_policy")), given(n.Fold("retry_policy_typed_config")))
}

// route reads one route. A policy of its own hides that of the virtual host as a
// whole (config.route.v3.VirtualHost, retry_policy).
func (e *envoyReader) route(x *envoyRoute) {
	x.policy = policyOf(x.action)
	e.seen[x.policy] = true
	x.policy = cmp.Or(x.policy, policyOf(x.host))
	for _, c := range x.clusters() {
		x.asks = asksFor(append([]*tree.Node{c}, x.scopes...))
		if x.action != nil {
			e.envoyMisspelt(x, x.target(c))
		}
		if x.action == nil || !x.retries() && x.asks == nil {
			e.quiet(cmp.Or(c, x.node).At)
			continue
		}
		e.retrying(x, c)
	}
}

// clusters returns the nodes that name where a route goes: its action, or the
// weighted clusters, each of which is a dependency of its own.
func (x *envoyRoute) clusters() []*tree.Node {
	if weighted := x.action.Fold("weighted_clusters", "clusters").List(); len(weighted) > 0 {
		return weighted
	}
	return []*tree.Node{x.action}
}

// target is the name of one of them, or "".
func (x *envoyRoute) target(to *tree.Node) string {
	if to == x.action {
		return to.Get("cluster").Text()
	}
	return cmp.Or(to.Get("cluster").Text(), to.Get("name").Text())
}

// retries reports whether a route retries under any condition at all.
func (x *envoyRoute) retries() bool {
	return x.extension() != "" || len(x.words(x.policy.Fold("retry_on").Text())) > 0
}

// extension is the type of a policy that is an extension's, or "".
func (x *envoyRoute) extension() string {
	if t := x.policy.Get("@type").Text(); !strings.HasSuffix(t, ".RetryPolicy") {
		return t
	}
	return ""
}

// retrying reads a route that retries, for one of its clusters.
func (e *envoyReader) retrying(x *envoyRoute, to *tree.Node) {
	name := x.target(to)
	at := cmp.Or(x.policy, x.asks.Get("key"), to).At
	d := policyfile.Dependency{Name: cmp.Or(name, "unnamed"), At: at, Protocol: "http", Route: x.identity()}
	if name == "" {
		e.open(to.At, &d, "a route retries whose cluster is not named here: a header or an extension chooses it")
	}
	if t := x.extension(); t != "" {
		e.open(at, &d, "an extension decides on retries here: %s", t)
	}
	if x.asks != nil {
		e.open(x.asks.Get("key").At, &d, asksOpen, d.Name, x.asks.Get("key").Text())
	}
	count, place := e.number(&d, x.policy.Fold("num_retries"), envoyRetries, at)
	retries(&d, count, place)
	e.envoyTimes(&d, x.action, x.policy, at)
	e.envoyConditions(&d, x)
	cluster, several := e.clusters.in(e.part, d.Name)
	d.Service = e.serviceOf(d.Name, cluster)
	bodyLimit(&d, x)
	if !d.Policy.Disabled {
		words := x.words(x.policy.Fold("retry_on").Text())
		e.envoyBudget(&d, cluster, several, x.action.Get("priority").Text(), place)
		e.handshakes(&d, cluster, words...)
		connects(&d, words, perTryOf(x.policy), cluster.Fold("connect_timeout"), envoyConnect)
	}
	e.add(d)
}

// bodyLimit reads what is kept of a request's body. The field that is deprecated cannot be
// above the listener's own limit.
func bodyLimit(d *policyfile.Dependency, x *envoyRoute) {
	for _, scope := range x.scopes[:2] { // of the route before that of its host
		n := cmp.Or(given(scope.Fold("request_body_buffer_limit")), given(scope.Fold("per_request_buffer_limit_bytes")))
		if v, ok := n.Number(); ok && v > 0 {
			d.BodyLimit = policyfile.Size(min(v, 1<<50))
			d.SetPlace("body_limit", n.At)
			return
		}
	}
}

// identity tells the routes of a file apart.
func (x *envoyRoute) identity() string {
	var config *tree.Node
	if len(x.scopes) > 2 {
		config = x.scopes[2]
	}
	match := x.node.Get("match")
	parts := []string{config.Get("name").Text(), x.host.Get("name").Text(), x.node.Get("name").Text()}
	for _, key := range []string{"prefix", "path", "path_separated_prefix", "safe_regex", "headers", "query_parameters", "grpc"} {
		if v := match.Fold(key); v != nil {
			parts = append(parts, key+"="+flat(v))
		}
	}
	return spaced(parts)
}

// spaced joins what is not empty.
func spaced(parts []string) string {
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// flat writes a value on one line.
func flat(n *tree.Node) string {
	if n == nil || n.Kind == tree.Scalar {
		return n.Text()
	}
	var parts []string
	for _, p := range n.Pairs {
		parts = append(parts, p.Key+":"+flat(p.Value))
	}
	for _, item := range n.Items {
		parts = append(parts, flat(item))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

// others notes the retry policies that no route has: those of filters that ask a
// service on their own account, such as ext_authz, and of Envoy's own streams.
func (e *envoyReader) others(n *tree.Node) {
	for _, p := range n.Pairs {
		if tree.Same(p.Key, "retry_policy") && p.Value.Map() && !e.seen[p.Value] {
			e.unjudged(p.At, "", "a retry policy that belongs to no route is not judged: it repeats calls of Envoy itself")
		}
	}
}
