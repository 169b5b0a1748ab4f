package policyfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/strict"
)

// profileSet holds the profiles of a file. Each is read when it is first
// needed, since a profile may extend one that stands below it.
type profileSet struct {
	d     *decoder
	nodes map[string]*yaml.Node
	names []string
	done  map[string]layer
	open  map[string]bool // being read: meeting one again is a circle
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
	s.done[name] = s.d.reader(n, owner, base).read(n, nil)
	return s.done[name]
}

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

// extends returns the name of the profile that n starts from. It looks ahead
// of the strict reading, because the profile has to be there before the
// fields that change it.
func (d *decoder) extends(n *yaml.Node, owner string) (name *yaml.Node, ok bool) {
	n = strict.Resolve(n)
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key := strict.Resolve(n.Content[i])
		if key.Kind != yaml.ScalarNode || key.Value != "extends" && key.Value != "profile" {
			continue
		}
		if ok {
			d.Fault(key, "extends and profile of %s mean the same: set only one", owner)
			return name, true
		}
		value := strict.Resolve(n.Content[i+1])
		if _, fine := d.label(value, key.Value); !fine {
			return nil, false
		}
		name, ok = value, true
	}
	return name, ok
}
