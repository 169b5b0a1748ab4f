package policyfile

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/strict"
)

// route reads one route. It is added only when it is free of faults: a
// half-read route might send requests to the wrong place.
func (d *decoder) route(f *File, n *yaml.Node, names []string) {
	r := Route{At: d.At(n)}
	before := d.Count()
	var options *yaml.Node
	known := d.values("", &r)
	maps.Copy(known, fields{
		"prefix":      func(v *yaml.Node) { d.prefix(v, &r.Prefix) },
		"host":        func(v *yaml.Node) { d.host(v, &r.Host) },
		"methods":     func(v *yaml.Node) { r.Methods = d.methods(v) },
		"headers":     func(v *yaml.Node) { r.Headers = d.headers(v) },
		"dependency":  func(v *yaml.Node) { d.dependency(v, names, &r.Dependency) },
		"max_body":    func(v *yaml.Node) { d.size(v, "max_body", &r.MaxBody) },
		"body_limit":  func(v *yaml.Node) { d.sizeUpTo(v, "body_limit", MaxBodyLimit, &r.BodyLimit) },
		"idempotency": func(v *yaml.Node) { options = v },
	})
	d.Keys(n, "a route", known)
	if options != nil { // last, for its faults name the dependency
		d.ingress(options, r.Dependency, &r.Idempotency)
	}
	if d.Count() > before {
		return
	}
	switch {
	case r.Prefix == "" && r.Host == "":
		d.Fault(n, "a route needs prefix or host, such as prefix: /payments")
		return
	case r.Dependency == "":
		d.Fault(n, "a route needs dependency: the name of one in dependencies")
		return
	case r.Stream && r.Timeout > 0:
		d.Fault(n, "a route for streams has a timeout, which would cut streams off: drop one of the two")
		return
	case r.Stream && options != nil && r.Idempotency.On:
		d.Fault(n, "a route for streams has idempotency keys, which store whole responses: drop one of the two")
		return
	}
	for _, other := range f.Gateway.Routes {
		if r.same(&other) {
			d.Fault(n, "a second route for %s, first on line %d: remove one", r.Host+r.Prefix, other.At.Line)
			return
		}
	}
	if dep, ok := f.Dependency(r.Dependency); ok {
		d.routable(n, r, dep)
		if i := slices.IndexFunc(f.Dependencies, func(d Dependency) bool { return d.Name == r.Dependency }); i >= 0 {
			f.Dependencies[i].BodyLimit = max(f.Dependencies[i].BodyLimit, r.BodyLimit)
		}
	}
	f.Gateway.Routes = append(f.Gateway.Routes, r)
}

// same reports whether two routes take the same requests, which would leave one of them
// without.
func (r *Route) same(other *Route) bool {
	if r.Prefix != other.Prefix || r.Host != other.Host || !maps.Equal(r.Headers, other.Headers) {
		return false
	}
	if len(r.Methods) == 0 || len(other.Methods) == 0 {
		return len(r.Methods) == len(other.Methods)
	}
	return slices.ContainsFunc(r.Methods, func(m string) bool { return slices.Contains(other.Methods, m) })
}

// maxHeaders bounds the headers that a route may ask for.
const maxHeaders = 16

// headers reads the headers that a request must have, by their canonical names.
func (d *decoder) headers(n *yaml.Node) map[string]string {
	found := map[string]string{}
	for key, v := range d.Entries(n, "headers") {
		name := http.CanonicalHeaderKey(key.Value)
		value := ""
		d.Text(v, "headers."+key.Value, &value)
		switch {
		case name == "Host":
			d.Fault(key, "headers has Host: use the key host")
		case !isToken(key.Value):
			d.Fault(key, "%s is not the name of a header", strict.Quote(key.Value))
		case found[name] != "":
			d.Fault(key, "header %s appears twice", name)
		case len(found) == maxHeaders:
			d.Fault(key, "headers has too many entries: want at most %d", maxHeaders)
			return found
		default:
			found[name] = value
		}
	}
	return found
}

// isToken reports whether s may be the name of a header (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", c)
	})
}

// prefix reads a path prefix in its clean form. Escapes and dot segments are
// refused, since the gateway compares decoded and cleaned paths, and such a
// prefix would never match.
func (d *decoder) prefix(v *yaml.Node, into *string) {
	s, ok := d.Scalar(v, "prefix", "a path such as /payments")
	switch {
	case !ok:
	case s[0] != '/' || strings.ContainsAny(s, "?#%") || strings.Contains(s, "//") || strings.Contains(s+"/", "/../") || strings.Contains(s+"/", "/./"):
		d.Fault(v, "prefix is %s: want a clean path such as /payments", strict.Quote(s))
	case s == "/health" || strings.HasPrefix(s, "/health/"):
		d.Fault(v, "prefix %s is reserved for the gateway", strict.Quote(s))
	default:
		*into = "/" + strings.Trim(s, "/")
	}
}

// host reads a host name without a port, in lower case: HTTP compares hosts
// without regard to case.
func (d *decoder) host(v *yaml.Node, into *string) {
	s, ok := d.Scalar(v, "host", "a host name")
	switch {
	case !ok:
	case !isLabel(s):
		d.Fault(v, "host is %s: want a host name without a port", strict.Quote(s))
	default:
		*into = strings.ToLower(s)
	}
}
