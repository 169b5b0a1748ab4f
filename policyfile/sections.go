package policyfile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// Sections returns the keys that a policy file may have at its top, in no order that
// means anything.
func Sections() []string { return slices.Clone(topKeys) }

var topKeys = []string{
	"$schema", "version", "service", "instances", "idempotency", "observability", "profiles",
	"dependencies", "consumers", "webhooks", "waivers", "gateway", "lint",
}

// file reads the whole document. Sections are read in the order in which
// they need each other, whatever their order in the file: profiles before
// dependencies, waivers before the policies they lift rules for.
func (d *decoder) file(f *File, root *yaml.Node) {
	if !d.version(f, root) {
		return
	}
	section := map[string]*yaml.Node{}
	keep := func(name string) func(*yaml.Node) {
		return func(v *yaml.Node) {
			section[name] = v
			f.places[name] = d.At(v)
		}
	}
	d.Keys(root, "the policy file", fields{
		"$schema":       func(v *yaml.Node) { d.Text(v, "$schema", &f.Schema) },
		"version":       skip,
		"service":       keep("service"),
		"instances":     func(v *yaml.Node) { d.count(v, "instances", "leave it out when it is unknown", &f.Instances) },
		"idempotency":   func(v *yaml.Node) { d.promise(v, "idempotency", &f.Idempotency, d.keep(f)) },
		"observability": func(v *yaml.Node) { d.observability(f, v) },
		"profiles":      keep("profiles"),
		"dependencies":  keep("dependencies"),
		"consumers":     keep("consumers"),
		"webhooks":      keep("webhooks"),
		"waivers":       keep("waivers"),
		"gateway":       keep("gateway"),
		"lint":          keep("lint"),
	})
	if f.Instances < 0 {
		d.FaultAt(d.At(root), "instances is negative")
	}
	if n := section["service"]; n != nil {
		f.Service, _ = d.label(n, "service")
	}
	profiles := d.profiles(section["profiles"])
	names := d.dependencyNames(section["dependencies"])
	named := slices.Concat(names, d.dependencyNames(section["consumers"]), d.dependencyNames(section["webhooks"]))
	if n := section["waivers"]; n != nil {
		f.Waivers = d.waivers(n, named)
	}
	d.seen = map[string]Position{}
	for _, s := range []struct {
		name string
		kind forbear.Kind
		into *[]Dependency
	}{
		{"dependencies", forbear.Sync, &f.Dependencies},
		{"consumers", forbear.Event, &f.Consumers},
		{"webhooks", forbear.Webhook, &f.Webhooks},
	} {
		if n := section[s.name]; n != nil {
			*s.into = d.dependencies(f, n, s.name, s.kind, profiles)
		}
	}
	if n := section["gateway"]; n != nil {
		d.gateway(f, n, names)
	}
	if n := section["lint"]; n != nil {
		d.lint(f, n, named)
	}
}

// keep returns a function that records where keys of the file were written.
func (d *decoder) keep(f *File) func(key string, v *yaml.Node) {
	return func(key string, v *yaml.Node) { f.places[key] = d.At(v) }
}

// observability reads what is switched off. The file says metrics: false,
// and the struct NoMetrics, so that its zero value obeys R-10.
func (d *decoder) observability(f *File, n *yaml.Node) {
	on := func(key string, off *bool) func(*yaml.Node) {
		return func(v *yaml.Node) {
			f.places["observability."+key] = d.At(v)
			said := true
			d.Flag(v, "observability."+key, &said)
			*off = !said
		}
	}
	d.Keys(n, "observability", fields{
		"metrics": on("metrics", &f.Observability.NoMetrics),
		"logs":    on("logs", &f.Observability.NoLogs),
	})
}

// maxDependencies bounds what one file may describe.
const maxDependencies = 10_000

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

// dependencies reads one of the sections that hold policies. Names are
// unique across the sections, because waivers and metrics know a dependency
// by its name alone.
func (d *decoder) dependencies(f *File, n *yaml.Node, section string, kind forbear.Kind, profiles *profileSet) (found []Dependency) {
	for key, value := range d.Entries(n, section) {
		if _, ok := d.label(key, "dependency"); !ok {
			continue
		}
		if len(d.seen) >= maxDependencies {
			d.Fault(key, "more than %d dependencies", maxDependencies)
			return found
		}
		if first, twice := d.seen[key.Value]; twice {
			d.Fault(key, "a second %s, first on line %d", key.Value, first.Line)
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
			d.FaultAt(at.Position, "%s of section %s is of kind %s: want %s", dep.Name, section, r.policy.Kind, kind)
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
		r.FaultAt(at.Position, "%s of section %s has %s, which is the gateway's for dependencies", dep.Name, section, field)
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

// profileSet holds the profiles of a file. Each is read when it is first
// needed, since a profile may extend one that stands below it.
type profileSet struct {
	d     *decoder
	nodes map[string]*yaml.Node
	names []string
	done  map[string]layer
	open  map[string]bool // being read: meeting one again is a circle
}

// builtin are the profiles of the library, in the order of the guide.
var builtin = []string{"standard", "cautious", "lattice"}

// profiles reads the section of that name. Every profile is read, used or not.
func (d *decoder) profiles(n *yaml.Node) *profileSet {
	s := &profileSet{d: d, nodes: map[string]*yaml.Node{}, done: map[string]layer{}, open: map[string]bool{}}
	s.names = append(s.names, builtin...)
	if n == nil {
		return s
	}
	for key, value := range d.Entries(n, "profiles") {
		if _, ok := d.label(key, "profile"); !ok {
			continue
		}
		if _, err := forbear.Profile(key.Value); err == nil {
			d.Fault(key, "profile %s is built in: choose another name", key.Value)
			continue
		}
		s.nodes[key.Value] = value
		s.names = append(s.names, key.Value)
	}
	// An unused profile is read too: its faults would otherwise show on the
	// day that it is used.
	for _, name := range s.names[len(builtin):] {
		s.read(name)
	}
	return s
}

// get returns the profile that a value names: one of the file, or a built-in
// one. After a fault it returns the standard's defaults, so that reading
// goes on.
func (s *profileSet) get(name *yaml.Node) layer {
	if s.open[name.Value] {
		s.d.Fault(name, "profile %s extends itself", name.Value)
		return layer{}
	}
	if s.nodes[name.Value] != nil {
		return s.read(name.Value)
	}
	p, err := forbear.Profile(name.Value)
	if err == nil {
		return layer{policy: p}
	}
	s.d.Fault(name, "unknown profile %s%s", strict.Quote(name.Value), nearest.Hint(name.Value, s.names, ""))
	return layer{}
}

// read returns a profile of the file. It is read once, so that its faults
// are reported once, however many dependencies extend it.
func (s *profileSet) read(name string) layer {
	if l, ok := s.done[name]; ok {
		return l
	}
	s.open[name] = true
	defer delete(s.open, name)
	owner, n := "profile "+name, s.nodes[name]
	base := layer{}
	if parent, ok := s.d.extends(n, owner); ok {
		base = s.get(parent)
	}
	r := s.d.reader(n, owner, base)
	s.d.Keys(n, owner, r.fields(fields{"extends": skip, "profile": skip}))
	r.reconcile()
	s.done[name] = *r.layer
	return *r.layer
}
