package foreign

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// traefikDial is Traefik's default of forwardingTimeouts.dialTimeout. It bounds what
// the middleware retries by default: a connection that is not made.
const traefikDial = 30 * time.Second

// dynamic reads the configuration of a file, or of the labels of a container of
// that name. old says that it is in the form of the first releases of version 2.
func (m *traefikMesh) dynamic(n *tree.Node, container string, old bool) {
	if middlewares := n.Fold("middlewares"); middlewares != nil {
		for _, p := range middlewares.Pairs {
			m.middleware(strings.ToLower(p.Key), p.Value, old)
		}
	}
	services := n.Fold("services")
	if routers := n.Fold("routers"); routers != nil {
		for _, p := range routers.Pairs {
			name, _, _ := strings.Cut(p.Value.Fold("service").Text(), "@")
			unit := policyfile.Dependency{Name: cmp.Or(container, name, p.Key), Route: p.Key, At: p.At, Protocol: "http"}
			balancer := services.Fold(name, "loadBalancer")
			for _, server := range balancer.Fold("servers").List() {
				unit.Service = cmp.Or(unit.Service, anonymous(server.Fold("url").Text()))
			}
			transport, _, _ := strings.Cut(balancer.Fold("serversTransport").Text(), "@")
			if v := n.Fold("serversTransports", transport, "insecureSkipVerify"); v.True() {
				m.once(v.At, "R-9", &unit, "tls.verify", "insecureSkipVerify switches the verification of certificates off")
			}
			m.use(p.Value.Fold("middlewares"), "", unit)
		}
	}
}

// traefikTransport judges how the certificates of servers are verified.
func (r *reader) traefikTransport(n *tree.Node) {
	d := policyfile.Dependency{Name: crdName(n.Get("metadata"), ""), At: n.At}
	for _, v := range []*tree.Node{n.Get("spec").Get("insecureSkipVerify"), n.Get("spec").Get("tls").Get("insecureSkipVerify")} {
		if v.True() {
			r.refuse(v.At, "R-9", &d, "tls.verify", "insecureSkipVerify switches the verification of certificates off")
		}
	}
	r.quiet(n.At)
}

func (m *traefikMesh) use(middlewares *tree.Node, by string, unit policyfile.Dependency) {
	use := traefikUse{part: m.part, unit: unit}
	for _, n := range listed(middlewares) {
		use.middlewares = append(use.middlewares, reference(n, by))
	}
	m.uses = append(m.uses, use)
}

// ingressRoute reads the routes of a resource, each of whose services is a unit.
func (m *traefikMesh) ingressRoute(n *tree.Node) {
	namespace := refNamespace(nil, n)
	for _, route := range n.Get("spec").Get("routes").List() {
		for _, service := range route.Get("services").List() {
			d := kubeService(service.Get("name").Text(), refNamespace(service, n), route.At)
			d.Route = title(n) + " " + route.Get("match").Text()
			m.use(route.Get("middlewares"), namespace+"/", d)
		}
	}
}

// ingress reads the annotation of an Ingress, which joins namespace and name by a
// dash.
func (m *traefikMesh) ingress(n *tree.Node) {
	of := annotation(n, traefikRouters)
	for _, rule := range n.Get("spec").Get("rules").List() {
		for _, path := range rule.Get("http").Get("paths").List() {
			name := cmp.Or(path.Get("backend").Get("service").Get("name").Text(), path.Get("backend").Get("serviceName").Text())
			d := kubeService(name, refNamespace(nil, n), of.At)
			d.Route = title(n)
			m.use(of, "", d)
		}
	}
}

// traefikUnit judges a retry middleware for one unit behind it.
func (r *reader) traefikUnit(d policyfile.Dependency, m *traefikRetry) {
	if m.buffer {
		if !r.traefikBuffer(d, m) {
			r.quiet(d.At)
		}
		return
	}
	// The first attempt counts, whatever the documentation says: with attempts 1
	// nothing is retried.
	attempts := m.settings.Fold("attempts")
	if n, ok := count(attempts); ok {
		retries(&d, n-1, attempts.At)
	} else {
		r.open(m.settings.At, &d, "the retries of %s have no number that can be read here", d.Name)
	}
	status := listed(m.settings.Fold("status"))
	if off := m.settings.Fold("disableRetryOnNetworkError"); off.True() && len(status) == 0 {
		retries(&d, 0, off.At)
		d.AtLeast = false
	}
	if d.Policy.Disabled {
		r.add(d)
		return
	}
	d.Policy.Backoff = forbear.Backoff{Schedule: []time.Duration{0}}
	var base time.Duration
	if r.time(&d, "backoff.base", m.settings.Fold("initialInterval"), traefikTime, &base); base > 0 {
		d.Policy.Backoff = forbear.Backoff{Base: base, Cap: saturated(2, base)}
	}
	if r.time(&d, "total", m.settings.Fold("timeout"), traefikTime, &d.Policy.Total); d.Policy.Total > 0 {
		// the retries end by then
	} else if m.old {
		r.cannot(&d, "R-3", "total.missing", "the retries of Traefik 1 and 2 have no timeout")
	} else {
		r.refuse(m.settings.At, "R-3", &d, "total.missing", "the middleware has no timeout, which newer releases of Traefik 3 know: nothing bounds the retries in time")
	}
	d.Policy.PerAttempt = traefikDial
	for _, item := range status {
		r.terminals(item.At, &d, item.Text())
	}
	if unsafe := m.settings.Fold("retryNonIdempotentMethod"); unsafe.True() && len(status) > 0 {
		r.refuse(unsafe.At, "R-6", &d, "methods", "retryNonIdempotentMethod repeats POST, with or without an Idempotency-Key")
	}
	r.cannot(&d, "R-1", "", "Traefik waits within 50%% of its interval, at most twice as long, and not at all without initialInterval: that is not full jitter")
	r.traefikLimits(&d, slices.ContainsFunc(status, func(n *tree.Node) bool { return traefikPause(n.Text()) }))
}

// traefikLimits finishes a unit. pause says that responses are tried again which may
// come with a Retry-After.
func (r *reader) traefikLimits(d *policyfile.Dependency, pause bool) {
	r.cannot(d, "R-7", "budget", "Traefik has no retry budget: what fails is tried again whatever the load")
	if pause {
		r.cannot(d, "R-5", "", "Traefik does not read Retry-After: a server that asks for a pause is asked again before it is over")
	}
	r.add(*d)
}

// traefikPause reports whether a status, or one of a range, may come with a Retry-After
// (RFC 9110 section 10.2.3 and RFC 6585).
func traefikPause(word string) bool {
	from, to, ranged := strings.Cut(strings.TrimSpace(word), "-")
	if !ranged {
		to = from
	}
	return slices.ContainsFunc([]string{"429", "503"}, func(s string) bool { return from <= s && s <= to })
}

// traefikTime reads a duration, or seconds without a unit.
func traefikTime(n *tree.Node) (time.Duration, bool) {
	if t, ok := seconds(n); ok {
		return t, true
	}
	return n.Span()
}

// labelled reports whether n is the services of a compose file, of which one has
// labels for Traefik's HTTP routers.
func labelled(n *tree.Node) bool {
	return n.Map() && slices.ContainsFunc(n.Pairs, func(p tree.Pair) bool {
		return p.Value.Map() && labels(p.Value) != nil
	})
}

// ownTraefik returns the labels of containers, which have settings of others beside
// them, and the sections of a file provider; it returns none for what is Traefik's own.
func ownTraefik(n *tree.Node) (own []*tree.Node) {
	switch {
	case n.Has("apiVersion") || traefikFirst(n):
	case traefikDynamic(n) != nil:
		for _, p := range n.Pairs {
			if slices.ContainsFunc(traefikSections, func(key string) bool { return tree.Same(p.Key, key) }) {
				own = append(own, p.Value)
			}
		}
	default:
		for _, p := range n.Pairs {
			for _, list := range []*tree.Node{p.Value.Get("labels"), p.Value.Get("deploy").Get("labels")} {
				if list != nil {
					own = append(own, list)
				}
			}
		}
	}
	return own
}

// traefikSections are those of a file provider, and what stands at its top without them.
var traefikSections = []string{"http", "tcp", "udp", "tls", "routers", "services", "middlewares", "serversTransports"}

// labels turns the labels of a container into the configuration that they stand for,
// or returns nil where they do not speak of HTTP. They are a map or a list, of the
// container itself or of its deployment.
func labels(container *tree.Node) *tree.Node {
	config := &tree.Node{Kind: tree.Map, At: container.At}
	put := func(key string, v *tree.Node) {
		path := strings.Split(key, ".")
		const most = 10
		if len(path) < 3 || len(path) > most || !strings.EqualFold(path[0], "traefik") || !strings.EqualFold(path[1], "http") {
			return
		}
		n := config
		for i, step := range path[1:] {
			step = strings.ToLower(step)
			next := n.Get(step)
			switch {
			case next != nil && next.Kind != tree.Map:
				return
			case next == nil:
				next = &tree.Node{Kind: tree.Map, At: v.At}
				if i == len(path)-2 {
					next = v
				}
				n.Pairs = append(n.Pairs, tree.Pair{Key: step, At: v.At, Value: next})
			}
			n = next
		}
	}
	for _, list := range []*tree.Node{container.Get("labels"), container.Get("deploy").Get("labels")} {
		if list == nil {
			continue
		}
		for _, p := range list.Pairs {
			put(p.Key, p.Value)
		}
		for _, item := range list.Items {
			key, value, _ := strings.Cut(item.Text(), "=")
			put(key, &tree.Node{Value: value, At: item.At})
		}
	}
	if len(config.Pairs) == 0 {
		return nil
	}
	return config
}
