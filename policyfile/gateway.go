package policyfile

import (
	"net"
	"net/url"

	"go.yaml.in/yaml/v4"
)

// gateway reads the section of that name. It comes after the dependencies,
// because a route is checked against the dependency that it names.
func (d *decoder) gateway(f *File, n *yaml.Node, names []string) {
	d.strict(n, "gateway", fields{
		"listen":     func(v *yaml.Node) { d.listen(v, &f.Gateway.Listen) },
		"tls":        func(v *yaml.Node) { d.listenerTLS(v, &f.Gateway.TLS) },
		"access_log": func(v *yaml.Node) { d.accessLog(v, &f.Gateway.AccessLog) },
		"routes": func(v *yaml.Node) {
			for _, item := range d.items(v, "gateway.routes") {
				d.route(f, item, names)
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

// accessLog reads which share of the calls is logged.
func (d *decoder) accessLog(v *yaml.Node, into *float64) {
	switch resolve(v).Value {
	case "on", "true":
		*into = 1
	case "off", "false":
		*into = 0
	default:
		d.ratio(v, "gateway.access_log", into)
	}
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
