package policyfile

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
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

// builtin are the profiles of the library, in the order of the guide.
var builtin = []string{"standard", "cautious", "lattice"}

// Version is the version of the format that this package reads, and that of a file
// which names none.
const Version = 1

// version reads the version of the file ahead of everything else. Of another
// version it is the only fault: what that version has besides would be one each,
// and bury the reason.
func (d *decoder) version(f *File, root *yaml.Node) (ok bool) {
	root = strict.Resolve(root)
	if root.Kind != yaml.MappingNode {
		return true // which file says
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if strict.Resolve(root.Content[i]).Value != "version" {
			continue
		}
		v := strict.Resolve(root.Content[i+1])
		want := strconv.Itoa(Version)
		switch s, ok := d.Scalar(v, "version", want); {
		case !ok:
			return false
		case s != want:
			d.Fault(v, "version is %s: this forbear reads version %s", strict.Quote(s), want)
			return false
		}
		f.Version = Version
	}
	return true
}
