package policyfile

import (
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Gateway says what the gateway serves.
type Gateway struct {
	// Listen is where it listens; none leaves the choice to the command.
	Listen Addresses `json:"listen,omitzero"`
	// TLS is what the gateway speaks to its callers; the zero value is HTTP in clear.
	TLS ListenerTLS `json:"tls,omitzero"`
	// TrustedProxies are the addresses of peers whose word about the caller counts:
	// a header that names the principal is believed from them alone. Empty names
	// none, and then that header is believed from every peer.
	TrustedProxies []netip.Prefix `json:"trusted_proxies,omitempty"`
	// AccessLog is the share of the calls that are logged, 0 to 1; failures are
	// logged anyway. In the file it may also be on or off. Default off.
	AccessLog float64 `json:"access_log,omitzero"`
	Routes    []Route `json:"routes,omitempty"`
}

// Route sends requests to a dependency, by the prefix of their path, by their host, or
// by both.
type Route struct {
	Prefix string `json:"prefix,omitzero"`
	Host   string `json:"host,omitzero"`
	// KeepPrefix leaves the prefix in the path that is sent on, as it is for gRPC.
	KeepPrefix bool `json:"keep_prefix,omitzero"`
	// Methods and Headers narrow the route: to these methods, and to requests that
	// have each of these headers with just this value.
	Methods    []string          `json:"methods,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Dependency string            `json:"dependency"`
	// Timeout bounds a call up to the end of its response, MaxBody the body of its
	// request, and MaxConcurrent the calls of the route that are under way. Zero sets
	// no bound beside those of the policy.
	Timeout       time.Duration `json:"timeout,omitzero"`
	MaxBody       Size          `json:"max_body,omitzero"`
	MaxConcurrent int           `json:"max_concurrent,omitzero"`
	// BodyLimit is how many bytes of a request's body are kept in memory to send it
	// again, at most [MaxBodyLimit]. Zero means 64 KiB. A longer body is sent once.
	BodyLimit Size `json:"body_limit,omitzero"`
	// Stream says that bodies are streams, which may stand still for any time.
	Stream      bool     `json:"stream,omitzero"`
	Idempotency Ingress  `json:"idempotency,omitzero"`
	At          Position `json:"-"`
}

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
	if dep.URL == "" && !dep.misled && !dep.Policy.Kind.Durable() {
		d.Fault(n, "dependency %s of this route has no url: add one, such as url: https://%[1]s.internal", dep.Name)
	}
	if dep.Policy.Kind.Durable() {
		d.Fault(n, "dependency %s of this route has kind %s, which is delivered and cannot be forwarded", dep.Name, dep.Policy.Kind)
	}
	if dep.Policy.Kind == forbear.GRPC && dep.HTTP2 == HTTP2Off {
		d.Fault(n, "dependency %s of this route has kind grpc, which needs HTTP/2: drop http2: off", dep.Name)
	}
	if r.Idempotency.On && !reflect.ValueOf(dep.Credentials).IsZero() {
		d.Fault(n, "this route has idempotency keys, so it forwards its callers' Authorization: drop the credentials of dependency %s", dep.Name)
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
func (d *decoder) url(v *yaml.Node, what, want, owner string, into *string) (ok bool) {
	s, ok := d.scalarOrEnv(v, what, want)
	if !ok {
		return false
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.TrimSuffix(u.Host, ":") == "" || u.Scheme != "http" && u.Scheme != "https":
		d.Fault(v, "%s is not an http or https address: want %s", what, want)
	case u.User != nil:
		d.refuse(d.At(v), "R-9", owner, what, "%s holds credentials, which do not belong in a policy file: use the key credentials", what)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		d.Fault(v, "%s has a query or a fragment: want %s", what, want)
	default:
		*into = s
		return true
	}
	return false
}
