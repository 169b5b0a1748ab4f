package check

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/policyfile"
)

// unit is a dependency with the file that it stands in.
type unit struct {
	source Source
	dep    *policyfile.Dependency
	load   *Load
}

// layer is what retries on the way to a dependency: the policy of the caller, or the
// product of one kind of foreign configuration. Policies of several callers are one
// layer, since a call goes through one of them.
func (u *unit) layer() string {
	switch {
	case u.source.File.Format == "":
		return "forbear"
	// Istio configures Envoy: a dump of a sidecar is the mesh once more.
	case u.source.File.Format == "envoy" && strings.Contains(u.dep.Name, "|"):
		return "istio"
	// Envoy Gateway carries out Gateway API: a rule has the retries of one of them.
	case u.source.File.Format == "envoygateway":
		return "gatewayapi"
	}
	return u.source.File.Format
}

// host is a dependency's name in a form in which several products can be compared.
type host struct {
	full  string // "payments.default", without a port but on this machine
	short string // "payments", for a service of a cluster; else full
}

// hostOf reads the names that products use: a service, a host with a port, a URL, or
// a cluster of Istio's such as "outbound|8080||payments.default.svc.cluster.local".
// Only services of a cluster are called by their first label.
func hostOf(name string) host {
	if parts := strings.Split(name, "|"); len(parts) == 4 {
		name = parts[3]
	}
	number := ""
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		name, number = u.Hostname(), u.Port()
		if number == "" && u.Scheme == "https" {
			number = "443"
		}
	} else if h, port, ok := strings.Cut(name, ":"); ok && port != "" && strings.Trim(port, "0123456789") == "" {
		name, number = h, port
	}
	address, err := netip.ParseAddr(name)
	if err == nil {
		name = address.String() // of IPv6 there are several spellings
	}
	if name == "127.0.0.1" || name == "::1" {
		name = "localhost"
	}
	if name == "localhost" || address.IsLoopback() {
		// Its ports are services of their own, which have nothing else in common.
		name = net.JoinHostPort(name, cmp.Or(number, "80"))
	}
	name = strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), ".cluster.local")
	full, cluster := strings.CutSuffix(name, ".svc")
	h := host{full, full}
	if cluster {
		h.short, _, _ = strings.Cut(full, ".")
	}
	return h
}

// names are what a dependency is known by: its service, its name, and the host that
// it is reached at. The name in a policy is no service's where the policy says of which
// service, or of which namespace, it is.
func (u *unit) names() (all []host) {
	named := false
	for _, name := range []string{u.dep.Service, u.dep.URL} {
		if name != "" {
			h := hostOf(name)
			all = append(all, h)
			named = named || name == u.dep.Service || h.short != h.full && h.short == u.dep.Name
		}
	}
	if !named || u.source.File.Format != "" {
		all = append(all, hostOf(u.dep.Name))
	}
	return all
}

// groups sorts the units by what they call. A name without a namespace means every
// service of that name: what is not known must not hide a layer.
func groups(units []*unit) [][]*unit {
	qualified := map[string][]string{} // full names, by the short one
	wild := map[string][]*unit{}       // those for all below a domain, by "*." and it
	for _, u := range units {
		for _, h := range u.names() {
			if strings.HasPrefix(h.full, "*.") {
				wild[h.full] = append(wild[h.full], u)
			}
			if h.short != h.full && !slices.Contains(qualified[h.short], h.full) {
				qualified[h.short] = append(qualified[h.short], h.full)
			}
		}
	}
	at := map[string]int{}
	var all [][]*unit
	put := func(name string, u *unit) {
		i, ok := at[name]
		if !ok {
			i = len(all)
			at[name] = i
			all = append(all, nil)
		}
		if !slices.Contains(all[i], u) {
			all[i] = append(all[i], u)
		}
	}
	for _, u := range units {
		for _, h := range u.names() {
			names := qualified[h.full]
			if h.short != h.full || len(names) == 0 {
				names = []string{h.full}
			}
			for _, full := range names {
				put(full, u)
				for rest, found := full, len(wild) > 0; found; {
					if _, rest, found = strings.Cut(rest, "."); found {
						for _, w := range wild["*."+rest] {
							put(full, w)
						}
					}
				}
			}
		}
	}
	return all
}

// layers finds the dependencies that more than one layer retries, and tells each
// unit's load of the others: their attempts multiply.
func (r *run) layers() []*unit {
	var units []*unit
	for _, s := range r.sources {
		for _, d := range s.File.All() {
			l := worst(s, d)
			units = append(units, &unit{s, d, &l})
		}
	}
	// Policies alone are one layer.
	if !slices.ContainsFunc(r.sources, func(s Source) bool { return s.File.Format != "" }) {
		return units
	}
	said := map[string]bool{}
	for _, group := range groups(units) {
		most := heaviest(group)
		if len(most) < 2 {
			continue
		}
		for _, u := range group {
			u.load.stack(most, u.layer())
		}
		// What may retry and is not known to is no finding: it makes the figures open.
		most = slices.DeleteFunc(most, func(u *unit) bool { return u.load.Attempts < 2 })
		if len(most) < 2 {
			continue
		}
		at := most[slices.IndexFunc(most, func(u *unit) bool { return u.source.File.Format != "" })]
		without, with, key, texts := 1.0, 1.0, "", []string{}
		for _, u := range most {
			// One place may stand for several dependencies, as that of a policy for all
			// routes of a host.
			key += fmt.Sprint(u.dep.At, u.dep.Name, "\x00")
			without, with = without*u.load.Without, with*u.load.With
			texts = append(texts, fmt.Sprintf("%s (%s, %s)", u.layer(), atLeast(u.load.AtLeast)+plural(u.load.Attempts, "attempt"), u.dep.At))
		}
		// One group may hold the same units as another, under a longer name.
		if said[key] {
			continue
		}
		said[key] = true
		r.add(twoOwners.at(at.dep.At, at.dep.Name, "%s is retried by %s: one call becomes up to %s sends (%s with budgets)",
			at.dep.Name, strings.Join(texts, " and "), number(without), number(with)).keyed("layers").degree(without).routed(at.dep.Route))
	}
	return units
}

// heaviest returns, for each layer of a group that retries, the unit with the most
// attempts, in the order of the sources.
func heaviest(group []*unit) (most []*unit) {
	for _, u := range group {
		if u.load.Attempts < 2 && !u.load.AtLeast {
			continue
		}
		i := slices.IndexFunc(most, func(m *unit) bool { return m.layer() == u.layer() })
		if i < 0 {
			most = append(most, u)
		} else if cmp.Compare(u.load.Without, most[i].load.Without) > 0 {
			most[i] = u
		}
	}
	return most
}

// stack multiplies l by the layers around it.
func (l *Load) stack(most []*unit, own string) {
	for _, u := range most {
		if u.layer() == own || slices.Contains(l.Layers, u.layer()) {
			continue
		}
		if l.AtLeast = l.AtLeast || u.load.AtLeast; u.load.Attempts < 2 {
			continue
		}
		l.Layers = append(l.Layers, u.layer())
		l.around.without *= u.load.Without
		l.around.with *= u.load.With
		l.around.busy *= u.load.Busy
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
