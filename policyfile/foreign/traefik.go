package foreign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// traefikGroups are the groups of Traefik's resources: that of version 3, and the
// older one of version 2.
var traefikGroups = []string{"traefik.io", "traefik.containo.us"}

// traefikRouters is the annotation that names the middlewares of an Ingress.
const traefikRouters = "traefik.ingress.kubernetes.io/router.middlewares"

// claimsTraefik knows Traefik's resources, an Ingress with its middlewares, a file of
// its file provider, the containers with its labels, and the file of version 1.
func claimsTraefik(n *tree.Node) bool {
	for _, group := range traefikGroups {
		if resource(n, group, "Middleware", "IngressRoute", "ServersTransport", "ServersTransportTCP") {
			return n.Has("spec")
		}
	}
	if resource(n, "networking.k8s.io", "Ingress") || resource(n, "extensions", "Ingress") {
		return annotation(n, traefikRouters) != nil
	}
	return traefikDynamic(n) != nil || traefikFirst(n) || labelled(n)
}

// traefikDynamic returns the section of a file provider that has the routers. What is
// under http may be at the top, as the first releases of version 2 had it.
func traefikDynamic(n *tree.Node) *tree.Node {
	for _, section := range []*tree.Node{n.Get("http"), n} {
		routers, middlewares := section.Fold("routers"), section.Fold("middlewares")
		if section != n && (routers.Map() || traefikMiddlewares(middlewares)) || routers.Map() && traefikMiddlewares(middlewares) {
			return section
		}
	}
	return nil
}

// traefikMiddlewares reports whether each member is a map of one kind, which is what
// a middleware is.
func traefikMiddlewares(n *tree.Node) bool {
	return n.Map() && len(n.Pairs) > 0 && !slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool { return !p.Value.Map() || len(p.Value.Pairs) != 1 })
}

// traefikFirst knows the static file of version 1, whose retries hold for all.
func traefikFirst(n *tree.Node) bool {
	return n.Fold("entryPoints").Map() && n.Fold("retry").Map()
}

// traefikRetry is a middleware that retries: its settings, and the units behind it.
type traefikRetry struct {
	settings *tree.Node
	buffer   bool // the settings are the retryExpression of the middleware buffering
	old      bool // a resource of version 2, whose retries have no timeout
	name     string
	users    []policyfile.Dependency
}

// traefikMesh is what all files say together. Middlewares go by their names, in
// lower case and without the provider; those of resources with their namespaces.
type traefikMesh struct {
	*reader
	middlewares named
	retries     map[*tree.Node]*traefikRetry // by the middleware
	order       []*tree.Node                 // of those
	alias       map[string]string            // the names of resources as annotations write them
	uses        []traefikUse
}

// traefikUse is a router with its middlewares.
type traefikUse struct {
	part        *Part
	middlewares []string
	unit        policyfile.Dependency
}

// traefik reads the middlewares retry and buffering with the routers that use them.
func (r *reader) traefik() {
	m := &traefikMesh{reader: r, middlewares: named{}, retries: map[*tree.Node]*traefikRetry{}, alias: map[string]string{}}
	for part := range r.each() {
		n := part.Root
		switch {
		case n.Get("kind").Text() == "Middleware" && n.Has("spec"):
			m.middleware(crdName(n.Get("metadata"), ""), n.Get("spec"), strings.HasPrefix(n.Get("apiVersion").Text(), traefikGroups[1]))
		case strings.HasPrefix(n.Get("kind").Text(), "ServersTransport"):
			r.traefikTransport(n)
		case n.Get("kind").Text() == "IngressRoute":
			m.ingressRoute(n)
		case annotation(n, traefikRouters) != nil:
			m.ingress(n)
		case traefikDynamic(n) != nil:
			m.dynamic(traefikDynamic(n), "", traefikDynamic(n) == n)
		case labelled(n):
			for _, p := range n.Pairs {
				if config := labels(p.Value); config != nil {
					m.dynamic(config.Get("http"), p.Key, false)
				}
			}
		case traefikFirst(n):
			m.middleware("traefik", n, true)
		}
	}
	used := m.join()
	for i, use := range m.uses {
		if !used[i] {
			r.quiet(use.unit.At)
		}
	}
	for _, n := range m.order {
		retry := m.retries[n]
		if len(retry.users) == 0 && !m.repeated(n) {
			retry.users = []policyfile.Dependency{{Name: retry.name, Protocol: "http"}}
		}
		for _, d := range retry.users {
			d.At = retry.settings.At
			d.Route += " " + retry.name
			r.traefikUnit(d, retry)
		}
	}
}

// repeated reports whether a middleware that nothing uses is written out a second time, as
// the labels of several containers do, and that one is used.
func (m *traefikMesh) repeated(n *tree.Node) bool {
	return slices.ContainsFunc(m.middlewares[m.retries[n].name], func(e entry) bool {
		other := m.retries[e.node]
		return other != nil && len(other.users) > 0 && flat(e.node) == flat(n)
	})
}

// join gives each retry middleware the units of the routers that use it, by
// themselves or in a chain. used says which of the uses retry.
func (m *traefikMesh) join() (used []bool) {
	used = make([]bool, len(m.uses))
	for at, use := range m.uses {
		unit := use.unit
		for _, retry := range m.retrying(use, use.middlewares, map[*tree.Node]bool{}) {
			i := slices.IndexFunc(retry.users, func(d policyfile.Dependency) bool { return d.Name == unit.Name })
			if i < 0 {
				i, retry.users = len(retry.users), append(retry.users, unit)
			}
			// A second one in the same router sends again all that the first one sends.
			if used[at] {
				retry.users[i].Layer = "traefik " + retry.name
			}
			used[at] = true
		}
	}
	return used
}

// retrying returns the middlewares of a router that retry, those in chains too. seen are
// the chains that were followed: one may name itself.
func (m *traefikMesh) retrying(use traefikUse, names []string, seen map[*tree.Node]bool) (all []*traefikRetry) {
	for _, name := range names {
		name = cmp.Or(m.alias[name], name)
		n, several := m.middlewares.in(use.part, name)
		if several {
			m.unjudged(use.unit.At, use.unit.Name, "there are several middlewares %s: which of them this router uses is not known", name)
		}
		if retry := m.retries[n]; retry != nil {
			all = append(all, retry)
		}
		if chain := n.Fold("chain", "middlewares"); chain != nil && !seen[n] {
			seen[n] = true
			var links []string
			for _, item := range listed(chain) {
				links = append(links, reference(item, name))
			}
			all = append(all, m.retrying(use, links, seen)...)
		}
	}
	return all
}

// middleware records a middleware.
func (m *traefikMesh) middleware(name string, n *tree.Node, old bool) {
	m.alias[strings.Replace(name, "/", "-", 1)] = name
	m.middlewares.add(m.part, name, n)
	retry := &traefikRetry{settings: n.Fold("retry"), old: old, name: name}
	if expression := n.Fold("buffering", "retryExpression"); expression.Text() != "" {
		retry.settings, retry.buffer = expression, true
	}
	if retry.buffer || retry.settings.Map() {
		m.order = append(m.order, n)
		m.retries[n] = retry
	}
}

// listed returns the members of a list, also of one that a label writes with commas.
func listed(n *tree.Node) []*tree.Node {
	if n == nil || n.Kind == tree.List {
		return n.List()
	}
	var all []*tree.Node
	for word := range strings.SplitSeq(n.Text(), ",") {
		all = append(all, &tree.Node{Value: strings.TrimSpace(word), At: n.At})
	}
	return all
}

// reference is the name that a reference to a middleware means: a text, or the name
// and namespace of a resource. by is the name of the middleware that refers.
func reference(n *tree.Node, by string) string {
	if n.Map() {
		namespace, _, _ := strings.Cut(by, "/")
		if !strings.Contains(by, "/") {
			namespace = ""
		}
		return crdName(n, namespace)
	}
	name, _, _ := strings.Cut(n.Text(), "@")
	return strings.ToLower(name)
}

// crdName is the name of a resource's middleware.
func crdName(n *tree.Node, namespace string) string {
	if v := n.Get("namespace").Text(); v != "" {
		namespace = v
	}
	return strings.TrimPrefix(namespace+"/"+n.Get("name").Text(), "/")
}
