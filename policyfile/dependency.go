package policyfile

import (
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// around returns the readers of what belongs to a dependency beside its
// policy: its address, what it promises, where its dead letters go. A
// profile has none of these.
func (r *policyReader) around(dep *Dependency) fields {
	known := r.values("", dep)
	maps.Copy(known, fields{
		"url":            func(v *yaml.Node) { dep.misled = !r.url(v, "url", dependencyURL, r.owner, &dep.URL) },
		"endpoints":      func(v *yaml.Node) { r.endpoints(v, &dep.Endpoints) },
		"connection_age": func(v *yaml.Node) { r.connectionAge(v, &dep.ConnectionAge) },
		"service":        func(v *yaml.Node) { dep.Service, _ = r.label(v, "service") },
		"protocol":       func(v *yaml.Node) { dep.Protocol, _ = r.label(v, "protocol") },
		"methods":        func(v *yaml.Node) { dep.Methods = r.methods(v) },
		"keys":           func(v *yaml.Node) { r.promise(v, "keys", &dep.Keys, r.note) },
		"dead_letter":    func(v *yaml.Node) { r.section(v, "dead_letter", &dep.DeadLetter, nil) },
		"secret":         func(v *yaml.Node) { r.secret(v, dep) },
		"credentials":    func(v *yaml.Node) { r.credentials(v, dep) },
		"health":         func(v *yaml.Node) { r.probe(v, dep) },
		"tls":            func(v *yaml.Node) { r.tls(v, dep) },
	})
	return r.placed("", known)
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
		d.Fault(n, "methods is empty: leave it out to allow all methods")
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
		r.refuse(r.At(n), "R-9", r.owner, "secret", "secret of %s is in clear: write secret: {env: NAME}", r.owner)
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
		d.Fault(n, "%s is not the name of an environment variable: want capitals, such as PAYMENTS_URL", what)
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
	if value == "" {
		state := "is empty"
		if !ok {
			state = "is not set"
		}
		d.Fault(n, "%s: the environment variable %s %s: set it where the service runs, or write the address here", what, name, state)
		return "", false
	}
	return value, true
}

// dependencies reads one of the sections that hold policies. Names are
// unique across the sections, because waivers and metrics know a dependency
// by its name alone.
func (d *decoder) dependencies(f *File, n *yaml.Node, section string, kind forbear.Kind, profiles *profileSet) (found []Dependency) {
	for key, value := range d.Entries(n, section) {
		if _, ok := d.label(key, "dependency"); !ok {
			continue
		}
		if len(d.seen) >= maxDependencies {
			d.Fault(key, "too many dependencies: want at most %d", maxDependencies)
			return found
		}
		if first, twice := d.seen[key.Value]; twice {
			d.Fault(key, "%s appears twice, first on line %d: rename or remove one", key.Value, first.Line)
			continue
		}
		dep := Dependency{Name: key.Value, At: d.At(key)}
		d.seen[key.Value] = dep.At
		// Without a profile a dependency starts from zero, which means the
		// defaults of its kind.
		base := layer{}
		if name, ok := d.extends(value, key.Value); ok {
			dep.Profile = name.Value
			base = profiles.get(name)
		}
		if section != "dependencies" {
			base.policy.Kind = kind
		}
		r := d.reader(value, key.Value, base)
		r.start = dep.At
		d.Keys(value, "dependency "+key.Value, r.fields(r.around(&dep)))
		r.reconcile()
		if section != "dependencies" && r.policy.Kind != kind {
			at := r.place("kind", dep.Name)
			d.FaultAt(at.Position, "%s of section %s has kind %s: want %s", dep.Name, section, r.policy.Kind, kind)
		}
		if section != "dependencies" {
			r.withoutGateway(&dep, section)
		}
		r.reached(&dep)
		d.judge(*r.layer, dep.Name, f.Waivers...)
		dep.Policy, dep.places = r.policy, r.places
		d.secured(&dep)
		found = append(found, dep)
	}
	return found
}

// withoutGateway refuses what only the gateway uses, in a section whose members it does
// not forward to: it would look as if it did something.
func (r *policyReader) withoutGateway(dep *Dependency, section string) {
	for _, field := range []string{"endpoints", "connection_age", "credentials", "pace", "health.endpoint", "tls", "http2"} {
		at, said := r.places[field]
		if !said || field == "tls" && dep.TLS == (TLS{}) || field == "http2" && dep.HTTP2 == HTTP2Auto {
			continue
		}
		r.FaultAt(at.Position, "%s of section %s has %s, which only dependencies may have", dep.Name, section, field)
	}
}

// dependency reads a reference to a dependency of the file, and suggests the
// nearest name for one that is not there.
func (d *decoder) dependency(n *yaml.Node, names []string, into *string) {
	s, ok := d.label(n, "dependency")
	if !ok {
		return
	}
	if slices.Contains(names, s) {
		*into = s
		return
	}
	d.Fault(n, "dependency %s is not in this file%s", strict.Quote(s), nearest.Hint(s, names, ""))
}

// dependencyNames lists the dependencies ahead of their reading, for those
// sections that refer to them, so that one fault in a dependency does not make
// every reference to it a fault.
func (d *decoder) dependencyNames(n *yaml.Node) (names []string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		names = append(names, strict.Resolve(n.Content[i]).Value)
	}
	return names
}
