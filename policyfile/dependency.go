package policyfile

import (
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile/strict"
)

// around returns the readers of what belongs to a dependency beside its
// policy: its address, what it promises, where its dead letters go. A
// profile has none of these.
func (r *policyReader) around(dep *Dependency) fields {
	known := fields{
		"url":            func(v *yaml.Node) { r.url(v, "url", dependencyURL, r.owner, &dep.URL) },
		"endpoints":      func(v *yaml.Node) { r.endpoints(v, &dep.Endpoints) },
		"connection_age": func(v *yaml.Node) { r.connectionAge(v, &dep.ConnectionAge) },
		"service":        func(v *yaml.Node) { dep.Service, _ = r.label(v, "service") },
		"protocol":       func(v *yaml.Node) { dep.Protocol, _ = r.label(v, "protocol") },
		"methods":        func(v *yaml.Node) { dep.Methods = r.methods(v) },
		"other_layers":   func(v *yaml.Node) { r.Text(v, "other_layers", &dep.OtherLayers) },
		"keys":           func(v *yaml.Node) { r.promise(v, "keys", &dep.Keys, r.note) },
		"dead_letter":    func(v *yaml.Node) { r.section(v, "dead_letter", &dep.DeadLetter, nil) },
		"dedup":          func(v *yaml.Node) { r.duration(v, "dedup", &dep.Dedup) },
		"secret":         func(v *yaml.Node) { r.secret(v, dep) },
		"credentials":    func(v *yaml.Node) { r.credentials(v, dep) },
		"health":         func(v *yaml.Node) { r.probe(v, dep) },
		"pace":           func(v *yaml.Node) { r.pace(v, dep) },
		"tls":            func(v *yaml.Node) { r.tls(v, dep) },
		"http2":          func(v *yaml.Node) { r.http2(v, dep) },
	}
	r.placed("", known)
	known["extends"], known["profile"] = skip, skip
	return known
}

// note records where a field was written, without counting it as set by this
// mapping: no other layer inherits it.
func (r *policyReader) note(field string, v *yaml.Node) {
	r.places[field] = place{r.At(v), r.owner}
}

// httpMethods are the methods that a policy may name. TRACE and CONNECT are
// missing: no client retries them.
var httpMethods = []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"}

// methods reads the methods that a dependency is called with, or a route takes, each
// once.
func (d *decoder) methods(n *yaml.Node) (found []string) {
	items := d.Items(n, "methods")
	if items != nil && len(items) == 0 {
		d.Fault(n, "methods is empty: leave it out for all methods")
	}
	for _, item := range items {
		if i, ok := d.Choice(item, "a method", httpMethods...); ok && !slices.Contains(found, httpMethods[i]) {
			found = append(found, httpMethods[i])
		}
	}
	return found
}

// promise reads what a server promises about idempotency keys. Zero means
// unknown, and not "none", so that leaving a field out never weakens a
// check.
func (d *decoder) promise(n *yaml.Node, what string, into *Keys, note func(string, *yaml.Node)) {
	known := d.values(what+".", into)
	for field, read := range known {
		known[field] = func(v *yaml.Node) {
			note(what+"."+field, v)
			read(v)
		}
	}
	d.Keys(n, what, known)
}

// secret takes the name of an environment variable, and never the secret.
// The message of a refusal names the dependency alone: what was written in
// clear must not travel on into a build log.
func (r *policyReader) secret(n *yaml.Node, dep *Dependency) {
	if strict.Resolve(n).Kind == yaml.ScalarNode {
		r.refuse(r.At(n), "R-9", r.owner, "secret", "secret of %s is written in clear: write secret: {env: NAME}", r.owner)
		return
	}
	r.Keys(n, "secret", fields{"env": func(v *yaml.Node) { r.env(v, "secret.env", &dep.SecretEnv) }})
}

// env reads the name of an environment variable: capitals, digits and
// underscores. The narrow form is what catches a secret that was pasted in
// place of its name.
func (d *decoder) env(n *yaml.Node, what string, into *string) bool {
	s, ok := d.Scalar(n, what, "the name of an environment variable")
	if !ok {
		return false
	}
	if len(s) > 128 || strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}) {
		// The value may be the secret itself, so that the message does not
		// quote it.
		d.Fault(n, "%s is not the name of an environment variable, such as PAYMENTS_URL", what)
		return false
	}
	*into = s
	return true
}

// FromEnvironment begins what stands in for an address that only the running service
// knows, in a file that [Preview] has read. The name of the variable is its path, so that
// [Marshal] writes it back. The domain is reserved by RFC 2606, so that a mistaken request
// reaches no one.
const FromEnvironment = "https://environment.invalid"

// scalarOrEnv is scalar for values that may also come from the environment, as
// {env: NAME}.
func (d *decoder) scalarOrEnv(n *yaml.Node, what, want string) (string, bool) {
	if n.Kind != yaml.MappingNode {
		return d.Scalar(n, what, want)
	}
	name := ""
	d.Keys(n, what, fields{"env": func(v *yaml.Node) { d.env(v, what+".env", &name) }})
	if name == "" {
		return "", false
	}
	if d.elsewhere {
		return FromEnvironment + "/" + name, true // the reader has another environment
	}
	value, ok := os.LookupEnv(name)
	if !ok || value == "" {
		d.Fault(n, "%s comes from the environment variable %s, which is not set", what, name)
		return "", false
	}
	return value, true
}
