package policyfile

import (
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// around returns the readers of what belongs to a dependency beside its policy.
func (r *policyReader) around(dep *Dependency) fields {
	known := fields{
		"url":          func(v *yaml.Node) { r.url(v, "url", r.owner, &dep.URL) },
		"service":      func(v *yaml.Node) { dep.Service, _ = r.label(v, "service") },
		"protocol":     func(v *yaml.Node) { dep.Protocol, _ = r.label(v, "protocol") },
		"methods":      func(v *yaml.Node) { dep.Methods = r.methods(v) },
		"other_layers": func(v *yaml.Node) { r.text(v, "other_layers", &dep.OtherLayers) },
		"keys":         func(v *yaml.Node) { r.promise(v, "keys", &dep.Keys, r.note) },
		"dead_letter":  func(v *yaml.Node) { r.deadLetter(v, dep) },
		"dedup":        func(v *yaml.Node) { r.duration(v, "dedup", &dep.Dedup) },
		"secret":       func(v *yaml.Node) { r.secret(v, dep) },
		"credentials":  func(v *yaml.Node) { r.credentials(v, dep) },
		"health":       func(v *yaml.Node) { r.probe(v, dep) },
		"tls":          r.tls,
	}
	for field, read := range known {
		known[field] = r.sets(field, read)
	}
	known["extends"], known["profile"] = skip, skip
	return known
}

func (r *policyReader) note(field string, v *yaml.Node) {
	r.places[field] = place{r.at(v), r.owner}
}

var httpMethods = []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"}

func (r *policyReader) methods(n *yaml.Node) (found []string) {
	for _, item := range r.items(n, "methods") {
		if i, ok := r.choice(item, "a method", httpMethods...); ok && !slices.Contains(found, httpMethods[i]) {
			found = append(found, httpMethods[i])
		}
	}
	return found
}

// promise reads what a server says of idempotency keys.
func (d *decoder) promise(n *yaml.Node, what string, into *Keys, note func(string, *yaml.Node)) {
	d.strict(n, what, fields{
		"max_length": func(v *yaml.Node) {
			note(what+".max_length", v)
			d.count(v, what+".max_length", "leave it out when it is unknown", &into.MaxLength)
		},
		"retention": func(v *yaml.Node) {
			note(what+".retention", v)
			d.duration(v, what+".retention", &into.Retention)
		},
	})
}

func (r *policyReader) deadLetter(n *yaml.Node, dep *Dependency) {
	r.strict(n, "dead_letter", fields{
		"queue": r.sets("dead_letter.queue", func(v *yaml.Node) { r.text(v, "dead_letter.queue", &dep.DeadLetter.Queue) }),
		"alert": r.sets("dead_letter.alert", func(v *yaml.Node) { r.text(v, "dead_letter.alert", &dep.DeadLetter.Alert) }),
	})
}

// secret takes the name of an environment variable, and never the secret.
func (r *policyReader) secret(n *yaml.Node, dep *Dependency) {
	if resolve(n).Kind == yaml.ScalarNode {
		r.refuse(r.at(n), "R-9", r.owner, "secret", "secret of %s is written in clear: write secret: {env: NAME}", r.owner)
		return
	}
	r.strict(n, "secret", fields{"env": func(v *yaml.Node) { r.env(v, "secret.env", &dep.SecretEnv) }})
}

// tls refuses to go without verification, in so many words.
func (r *policyReader) tls(n *yaml.Node) {
	r.strict(n, "tls", fields{"verify": r.sets("tls.verify", func(v *yaml.Node) {
		verify := true
		r.flag(v, "tls.verify", &verify)
		if !verify {
			r.refuse(r.at(v), "R-9", r.owner, "tls.verify", "%s: tls.verify cannot be switched off", r.owner)
		}
	})})
}

// env reads the name of an environment variable.
func (d *decoder) env(n *yaml.Node, what string, into *string) bool {
	s, ok := d.scalar(n, what, "the name of an environment variable")
	if !ok {
		return false
	}
	if len(s) > 128 || strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}) {
		// What stands there may be the secret itself.
		d.fault(n, "", "%s is not the name of an environment variable, such as PAYMENTS_URL", what)
		return false
	}
	*into = s
	return true
}

// fromEnvironment stands for an address that only the running service knows.
const fromEnvironment = "https://environment.invalid"

// scalarOrEnv is scalar for values that may also come from the environment, as
// {env: NAME}.
func (d *decoder) scalarOrEnv(n *yaml.Node, what, want string) (string, bool) {
	if n.Kind != yaml.MappingNode {
		return d.scalar(n, what, want)
	}
	name := ""
	d.strict(n, what, fields{"env": func(v *yaml.Node) { d.env(v, what+".env", &name) }})
	if name == "" {
		return "", false
	}
	if d.inspect {
		return fromEnvironment, true // a judge has another environment
	}
	value, ok := os.LookupEnv(name)
	if !ok || value == "" {
		d.fault(n, "", "%s comes from the environment variable %s, which is not set", what, name)
		return "", false
	}
	return value, true
}
