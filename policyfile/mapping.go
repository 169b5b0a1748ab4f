package policyfile

import (
	"cmp"
	"encoding"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/policyfile/internal/former"
)

// fields says what a mapping may hold and how each key's value is read. It
// serves as the list of known keys too, for suggestions.
type fields map[string]func(v *yaml.Node)

// strict reads a mapping of known keys. Anything else is a fault: a
// misspelled max_retrys that was ignored would leave the default in force,
// unnoticed.
func (d *decoder) strict(n *yaml.Node, what string, known fields) {
	for key, value := range d.entries(n, what) {
		read, ok := known[key.Value]
		if old, renamed := former.Keys[key.Value]; !ok && renamed && known[old.Instead] != nil {
			d.former(n, key, what, old)
			read, ok = known[old.Instead], true
		}
		if !ok {
			hint := nearest.Hint(key.Value, slices.Sorted(maps.Keys(known)), "")
			d.fault(key, "", "unknown key %s in %s%s", quote(key.Value), what, hint)
			continue
		}
		read(value)
	}
}

// values returns the readers of a struct's plain values, under their JSON names,
// which Marshal and the schema go by as well. In faults prefix comes before a name.
func (d *decoder) values(prefix string, into any) fields {
	all := reflect.ValueOf(into).Elem()
	known := make(fields, 2*all.NumField()) // its reader adds to them
	for f, v := range all.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		what := prefix + name
		switch p := v.Addr().Interface().(type) {
		case *bool:
			known[name] = func(v *yaml.Node) { d.flag(v, what, p) }
		case *int:
			known[name] = func(v *yaml.Node) { d.count(v, what, cmp.Or(instead[what], "leave it out for the default"), p) }
		case *float64:
			known[name] = func(v *yaml.Node) { d.ratio(v, what, p) }
		case *time.Duration:
			known[name] = func(v *yaml.Node) { d.duration(v, what, p) }
		case *string:
			known[name] = func(v *yaml.Node) { d.text(v, what, p) }
		case encoding.TextUnmarshaler:
			known[name] = func(v *yaml.Node) {
				words := enum(f.Type) // seldom asked for, and not free
				if i, ok := d.choice(v, what, words...); ok {
					_ = p.UnmarshalText([]byte(words[i])) // its own word
				}
			}
		}
	}
	return known
}

// instead is the hint where 0 stands for a count: zero means the default in a
// Policy, and its author meant none.
var instead = map[string]string{
	"max_retries":            "to allow no retry at all, write disabled: true",
	"max_attempts":           "to allow no retry at all, write disabled: true",
	"max_concurrent":         "leave it out to set no bound",
	"budget.min_retries":     "for no floor, write strict: true",
	"keys.max_length":        "leave it out when it is unknown",
	"idempotency.max_length": "leave it out when it is unknown",
}

// entries returns the keys and values of a mapping, aliases resolved. Keys that
// are not plain words, or appear twice, are faults and left out.
func (d *decoder) entries(n *yaml.Node, what string) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n = resolve(n); n.Kind != yaml.MappingNode {
			d.fault(n, "", "%s is %s: want a mapping", what, describe(n))
			return
		}
		seen := map[string]Position{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := resolve(n.Content[i])
			switch first, twice := seen[key.Value]; {
			case key.Kind != yaml.ScalarNode:
				d.fault(key, "", "a key of %s is %s: want a name", what, describe(key))
				continue
			// Merge keys are gone from YAML 1.2, and hide where a value
			// comes from.
			case key.Tag == "!!merge":
				d.fault(key, "", "merge keys are not read: use profiles and extends")
				continue
			case twice:
				d.fault(key, "", "key %s of %s appears twice, first on line %d", quote(key.Value), what, first.Line)
				continue
			}
			seen[key.Value] = d.at(key)
			if !yield(key, resolve(n.Content[i+1])) {
				return
			}
		}
	}
}

// items returns the members of a list, aliases resolved.
func (d *decoder) items(n *yaml.Node, what string) []*yaml.Node {
	if n = resolve(n); n.Kind != yaml.SequenceNode {
		d.fault(n, "", "%s is %s: want a list", what, describe(n))
		return nil
	}
	nodes := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		nodes[i] = resolve(c)
	}
	return nodes
}

// resolve follows aliases. It ends, because document has refused loops.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// describe names what a node is, for messages that expected something else.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	default:
		return quote(n.Value)
	}
}
