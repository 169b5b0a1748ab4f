package policyfile

import (
	"net"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v4"
)

// gateway reads the section of that name. It comes after the dependencies,
// because a route is checked against the dependency that it names.
func (d *decoder) gateway(f *File, n *yaml.Node, names []string) {
	d.strict(n, "gateway", fields{
		"listen": func(v *yaml.Node) { d.listen(v, &f.Gateway.Listen) },
		"tls":    func(v *yaml.Node) { d.listenerTLS(v, &f.Gateway.TLS) },
		"routes": func(v *yaml.Node) {
			// Two routes with the same prefix would leave one of them
			// without requests.
			seen := map[string]Position{}
			for _, item := range d.items(v, "gateway.routes") {
				d.route(f, item, names, seen)
			}
		},
	})
}

// listen reads an address with a port. The host may be empty, which means
// all interfaces.
func (d *decoder) listen(v *yaml.Node, into *string) {
	const want = "an address such as 127.0.0.1:8080"
	s, ok := d.scalar(v, "gateway.listen", want)
	if !ok {
		return
	}
	if _, port, err := net.SplitHostPort(s); err != nil || port == "" {
		d.fault(v, "", "gateway.listen is %s: want %s", quote(s), want)
		return
	}
	*into = s
}

// route reads one route. It is added only when it is free of faults: a
// half-read route might send requests to the wrong place.
func (d *decoder) route(f *File, n *yaml.Node, names []string, seen map[string]Position) {
	r := Route{At: d.at(n)}
	before := len(d.faults) + d.more
	var options *yaml.Node
	d.strict(n, "a route", fields{
		"prefix":      func(v *yaml.Node) { d.prefix(v, &r.Prefix) },
		"host":        func(v *yaml.Node) { d.host(v, &r.Host) },
		"dependency":  func(v *yaml.Node) { d.dependency(v, names, &r.Dependency) },
		"idempotency": func(v *yaml.Node) { options = v },
	})
	if options != nil { // last, for its faults name the dependency
		d.ingress(options, r.Dependency, &r.Idempotency)
	}
	if len(d.faults)+d.more > before {
		return
	}
	switch {
	case r.Prefix == "" && r.Host == "":
		d.fault(n, "", "a route needs prefix or host")
		return
	case r.Prefix != "" && r.Host != "":
		d.fault(n, "", "a route has prefix or host, not both")
		return
	case r.Dependency == "":
		d.fault(n, "", "a route needs dependency")
		return
	}
	key := r.Prefix + r.Host // a prefix begins with a slash, a host does not
	if first, twice := seen[key]; twice {
		d.fault(n, "", "a second route for %s, first on line %d", key, first.Line)
		return
	}
	seen[key] = r.At
	if dep, ok := f.Dependency(r.Dependency); ok {
		d.routable(n, dep)
	}
	f.Gateway.Routes = append(f.Gateway.Routes, r)
}

// routable checks that a gateway can send requests to dep: it needs an
// address, and a kind that is called while its caller waits.
func (d *decoder) routable(n *yaml.Node, dep Dependency) {
	if dep.URL == "" {
		d.fault(n, "", "dependency %s of this route has no url", dep.Name)
	}
	if dep.Policy.Kind.Durable() {
		d.fault(n, "", "dependency %s of this route is of kind %s, which is delivered and not forwarded", dep.Name, dep.Policy.Kind)
	}
}

// prefix reads a path prefix in its clean form. Escapes and dot segments are
// refused, since the gateway compares decoded and cleaned paths, and such a
// prefix would never match.
func (d *decoder) prefix(v *yaml.Node, into *string) {
	s, ok := d.scalar(v, "prefix", "a path such as /payments")
	switch {
	case !ok:
	case s[0] != '/' || strings.ContainsAny(s, "?#%") || strings.Contains(s, "//") || strings.Contains(s+"/", "/../") || strings.Contains(s+"/", "/./"):
		d.fault(v, "", "prefix is %s: want a clean path such as /payments", quote(s))
	case s == "/health" || strings.HasPrefix(s, "/health/"):
		d.fault(v, "", "prefix %s is the gateway's own", quote(s))
	default:
		*into = "/" + strings.Trim(s, "/")
	}
}

// host reads a host name without a port, in lower case: HTTP compares hosts
// without regard to case.
func (d *decoder) host(v *yaml.Node, into *string) {
	s, ok := d.scalar(v, "host", "a host name")
	switch {
	case !ok:
	case !isLabel(s):
		d.fault(v, "", "host is %s: want a host name without a port", quote(s))
	default:
		*into = strings.ToLower(s)
	}
}

// dependencyURL is what the base of a dependency, and its health endpoint, look like.
const dependencyURL = "an address such as https://payments.internal/v1"

// url reads an address that requests go to.
// Credentials do not belong in a policy file: they are refused under R-9 and do not
// reach the message.
//
// A query is refused too: the gateway appends the path and the query of each
// request.
func (d *decoder) url(v *yaml.Node, what, want, owner string, into *string) {
	s, ok := d.scalarOrEnv(v, what, want)
	if !ok {
		return
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		d.fault(v, "", "%s is no http or https address: want %s", what, want)
	case u.User != nil:
		d.refuse(d.at(v), "R-9", owner, what, "%s holds credentials, which do not belong into a policy file", what)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		d.fault(v, "", "%s has a query or a fragment: want %s", what, want)
	default:
		*into = s
	}
}
