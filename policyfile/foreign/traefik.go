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
	users    []policyfile.Dependency
}

// traefikMesh is what all files say together. Middlewares go by their names, in
// lower case and without the provider; those of resources with their namespaces.
type traefikMesh struct {
	names   []string // in order
	retries map[string]*traefikRetry
	chains  map[string][]string
	alias   map[string]string // the names of resources as annotations write them
	uses    []traefikUse
}

// traefikUse is a router with its middlewares.
type traefikUse struct {
	middlewares []string
	unit        policyfile.Dependency
}

// traefik reads the middlewares retry and buffering with the routers that use them.
func (r *reader) traefik() {
	m := &traefikMesh{retries: map[string]*traefikRetry{}, chains: map[string][]string{}, alias: map[string]string{}}
	for _, part := range r.parts {
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
			r.traefikDynamic(m, traefikDynamic(n), "", traefikDynamic(n) == n)
		case labelled(n):
			for _, p := range n.Pairs {
				if config := labels(p.Value); config != nil {
					r.traefikDynamic(m, config.Get("http"), p.Key, false)
				}
			}
		case traefikFirst(n):
			name := "traefik"
			m.middleware(name, n, true)
			m.retries[name].users = []policyfile.Dependency{{Name: name, Protocol: "http"}}
		}
	}
	used := m.join()
	for i, use := range m.uses {
		if !used[i] {
			r.quiet(use.unit.At)
		}
	}
	for _, name := range m.names {
		retry := m.retries[name]
		if len(retry.users) == 0 {
			retry.users = []policyfile.Dependency{{Name: name, Protocol: "http"}}
		}
		for _, d := range retry.users {
			d.At = retry.settings.At
			d.Route += " " + name
			r.traefikUnit(d, retry)
		}
	}
}

// join gives each retry middleware the units of the routers that use it, by
// themselves or in a chain. used says which of the uses retry.
func (m *traefikMesh) join() (used []bool) {
	used = make([]bool, len(m.uses))
	for at, use := range m.uses {
		const most = 5 // chains within chains
		all := use.middlewares
		for range most {
			var next []string
			for _, name := range all {
				if chain, ok := m.chains[cmp.Or(m.alias[name], name)]; ok {
					next = append(next, chain...)
				} else {
					next = append(next, cmp.Or(m.alias[name], name))
				}
			}
			all = next
		}
		unit := use.unit
		for _, name := range all {
			retry := m.retries[name]
			if retry == nil {
				continue
			}
			i := slices.IndexFunc(retry.users, func(d policyfile.Dependency) bool { return d.Name == unit.Name })
			if i < 0 {
				i, retry.users = len(retry.users), append(retry.users, unit)
			}
			// A second one in the same router sends again all that the first one sends.
			if used[at] {
				retry.users[i].Layer = "traefik " + name
			}
			used[at] = true
		}
	}
	return used
}

// middleware records a middleware if it retries, or may hold one that does.
func (m *traefikMesh) middleware(name string, n *tree.Node, old bool) {
	m.alias[strings.Replace(name, "/", "-", 1)] = name
	if chain := n.Fold("chain", "middlewares"); chain != nil {
		for _, item := range listed(chain) {
			m.chains[name] = append(m.chains[name], reference(item, name))
		}
	}
	retry := &traefikRetry{settings: n.Fold("retry"), old: old}
	if expression := n.Fold("buffering", "retryExpression"); expression.Text() != "" {
		retry.settings, retry.buffer = expression, true
	}
	if m.retries[name] == nil && (retry.buffer || retry.settings.Map()) {
		m.names = append(m.names, name)
		m.retries[name] = retry
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
