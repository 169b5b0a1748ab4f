package policyfile

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// gateway reads the section of that name. It comes after the dependencies,
// because a route is checked against the dependency that it names.
func (d *decoder) gateway(f *File, n *yaml.Node, names []string) {
	d.Keys(n, "gateway", fields{
		"listen":          func(v *yaml.Node) { d.addresses(v, &f.Gateway.Listen) },
		"tls":             func(v *yaml.Node) { d.listenerTLS(v, &f.Gateway.TLS) },
		"trusted_proxies": func(v *yaml.Node) { d.proxies(v, &f.Gateway.TrustedProxies) },
		"access_log":      func(v *yaml.Node) { d.accessLog(v, &f.Gateway.AccessLog) },
		"routes": func(v *yaml.Node) {
			for _, item := range d.Items(v, "gateway.routes") {
				f.places["gateway.routes"] = d.At(v) // whatever becomes of them
				d.route(f, item, names)
			}
		},
	})
}

// isPort reports whether a port can be listened on: a number, or the name of a
// service.
func isPort(port string) bool {
	if port != "" && strings.Trim(port, "+-0123456789") != "" {
		return true // a name, which the system knows or not
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

// accessLog reads which share of the calls is logged.
func (d *decoder) accessLog(v *yaml.Node, into *float64) {
	switch strict.Resolve(v).Value {
	case "on", "true":
		*into = 1
	case "off", "false":
		*into = 0
	default:
		if share, ok := d.share(v, "gateway.access_log", "on, off, or "); ok {
			*into = share
		}
	}
}

// routable checks that a gateway can send requests to dep as the route says: it
// needs an address, a kind that is called while its caller waits, and a protocol
// that the kind can be sent by.
func (d *decoder) routable(n *yaml.Node, r Route, dep Dependency) {
	if dep.URL == "" {
		d.Fault(n, "dependency %s of this route has no url", dep.Name)
	}
	if dep.Policy.Kind.Durable() {
		d.Fault(n, "dependency %s of this route is of kind %s, which is delivered and not forwarded", dep.Name, dep.Policy.Kind)
	}
	if dep.Policy.Kind == forbear.GRPC && dep.HTTP2 == HTTP2Off {
		d.Fault(n, "dependency %s of this route is of kind grpc, which needs HTTP/2, and has http2: off", dep.Name)
	}
	if r.Idempotency.On && !reflect.ValueOf(dep.Credentials).IsZero() {
		d.Fault(n, "this route honors idempotency keys and passes its callers' Authorization on: dependency %s has credentials, which it would not send", dep.Name)
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
	case err != nil || strings.TrimSuffix(u.Host, ":") == "" || u.Scheme != "http" && u.Scheme != "https":
		d.Fault(v, "%s is no http or https address: want %s", what, want)
	case u.User != nil:
		d.refuse(d.At(v), "R-9", owner, what, "%s holds credentials, which do not belong into a policy file", what)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		d.Fault(v, "%s has a query or a fragment: want %s", what, want)
	default:
		*into = s
	}
}
