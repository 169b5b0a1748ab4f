package strict

import (
	"iter"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/internal/nearest"
)

// Fields says what a mapping may hold and how each key's value is read. It
// serves as the list of known keys too, for suggestions.
type Fields map[string]func(v *yaml.Node)

// Keys reads a mapping of known keys. Anything else is a fault: a
// misspelled max_retrys that was ignored would leave the default in force,
// unnoticed.
func (r *Reader) Keys(n *yaml.Node, what string, known Fields) {
	for key, value := range r.Entries(n, what) {
		read, ok := known[key.Value]
		if !ok && r.Former != nil {
			if now, renamed := r.Former(n, key, what, known); renamed {
				read, ok = known[now], true
			}
		}
		if !ok {
			hint := nearest.Hint(key.Value, slices.Sorted(maps.Keys(known)), "")
			r.Fault(key, "unknown key %s in %s%s", Quote(key.Value), what, hint)
			continue
		}
		read(value)
	}
}

// Entries returns the keys and values of a mapping, aliases resolved. Keys that
// are not plain words, or appear twice, are faults and left out.
func (r *Reader) Entries(n *yaml.Node, what string) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n = Resolve(n); n.Kind != yaml.MappingNode {
			r.Fault(n, "%s is %s: want a mapping", what, Describe(n))
			return
		}
		seen := map[string]Position{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := Resolve(n.Content[i])
			switch first, twice := seen[key.Value]; {
			case key.Kind != yaml.ScalarNode:
				r.Fault(key, "a key of %s is %s: want a name", what, Describe(key))
				continue
			// Merge keys are gone from YAML 1.2, and hide where a value
			// comes from.
			case key.Tag == "!!merge":
				r.Fault(key, "merge keys (<<) are not supported: use profiles and extends")
				continue
			case twice:
				r.Fault(key, "key %s of %s appears twice, first on line %d", Quote(key.Value), what, first.Line)
				continue
			}
			seen[key.Value] = r.At(key)
			if !yield(key, Resolve(n.Content[i+1])) {
				return
			}
		}
	}
}

// Items returns the members of a list, aliases resolved.
func (r *Reader) Items(n *yaml.Node, what string) []*yaml.Node {
	if n = Resolve(n); n.Kind != yaml.SequenceNode {
		r.Fault(n, "%s is %s: want a list", what, Describe(n))
		return nil
	}
	nodes := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		nodes[i] = Resolve(c)
	}
	return nodes
}

// Resolve follows aliases. It ends, because Document has refused loops.
func Resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Describe names what a node is, for messages that expected something else.
func Describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	default:
		return Quote(n.Value)
	}
}
