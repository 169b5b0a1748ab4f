package tree

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"

	"go.yaml.in/yaml/v4"

	"github.com/forbear-go/forbear/policyfile"
)

// YAML parses the documents of a YAML file; empty ones are left out. The documents before
// a fault are returned with it.
func YAML(name string, data []byte) (roots []*Node, _ *policyfile.Fault) {
	fault := func(at policyfile.Position, message string) *policyfile.Fault {
		at.File, at.Line, at.Column = name, max(at.Line, 1), max(at.Column, 1)
		return &policyfile.Fault{Position: at, Message: "not YAML: " + message}
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, fault(policyfile.Position{}, err.Error())
	}
	for {
		var doc yaml.Node
		err := loader.Load(&doc)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			at, message := policyfile.Position{}, err.Error()
			if e, ok := errors.AsType[*yaml.LoadError](err); ok {
				at.Line, at.Column, message = e.Mark.Line, e.Mark.Column, e.Message
			}
			return roots, fault(at, message)
		}
		if len(doc.Content) != 1 {
			continue
		}
		c := converter{name: name, done: map[*yaml.Node]*Node{}, size: map[*Node]int{}}
		root := c.node(doc.Content[0])
		if c.whole > mostExpanded+10*c.own {
			return roots, fault(policyfile.Position{Line: root.At.Line, Column: root.At.Column}, "aliases expand the file beyond the limit")
		}
		if c.loop != nil {
			return roots, fault(policyfile.Position{Line: c.loop.Line, Column: c.loop.Column}, "alias *"+c.loop.Value+" contains itself")
		}
		// A document of nothing, as behind a last "---".
		if root.Kind != Scalar || root.Value != "" {
			roots = append(roots, root)
		}
	}
}

// mostExpanded bounds the values that aliases may bring a file to, beyond ten times
// its own: a few hundred bytes of nested aliases can expand to gigabytes.
const mostExpanded = 1_000_000

// converter turns YAML's nodes into ours. done holds what stands behind the
// anchors, nil while it is being converted: to meet it again is a loop. own counts the
// values of the file, and whole those that it has when every alias is replaced; size
// has the latter for what stands behind the anchors. whole is saturated.
type converter struct {
	name       string
	done       map[*yaml.Node]*Node
	size       map[*Node]int
	own, whole int
	loop       *yaml.Node
}

func (c *converter) at(n *yaml.Node) policyfile.Position {
	return policyfile.Position{File: c.name, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

func (c *converter) node(n *yaml.Node) *Node {
	if n.Kind == yaml.AliasNode {
		known, met := c.done[n.Alias]
		if met && known == nil {
			c.loop = n
			return &Node{At: c.at(n)}
		}
		if met {
			c.whole = min(c.whole+c.size[known], 1<<40)
			return known
		}
		n = n.Alias
	}
	before := c.whole
	c.own, c.whole = c.own+1, c.whole+1
	if n.Anchor != "" {
		c.done[n] = nil
	}
	out := &Node{At: c.at(n)}
	switch n.Kind {
	case yaml.MappingNode:
		out.Kind = Map
		c.pairs(out, n)
	case yaml.SequenceNode:
		out.Kind = List
		out.Items = make([]*Node, 0, len(n.Content))
		for _, item := range n.Content {
			out.Items = append(out.Items, c.node(item))
		}
	default:
		out.Value = text(n)
		out.Block = n.Style&yaml.LiteralStyle != 0 && out.Value == n.Value
	}
	if n.Anchor != "" {
		c.done[n], c.size[out] = out, c.whole-before
	}
	return out
}

// text returns what a scalar says.
func text(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!null":
		return ""
	case "!!binary":
		if data, err := base64.StdEncoding.DecodeString(n.Value); err == nil {
			return string(data)
		}
	}
	return n.Value
}

// pairs converts the pairs of a map. Those that a merge key brings in come last,
// and only where the map has not got them itself.
func (c *converter) pairs(out *Node, n *yaml.Node) {
	out.Pairs = make([]Pair, 0, len(n.Content)/2)
	var merged []*Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], c.node(n.Content[i+1])
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			merged = append(merged, value.List()...)
			continue
		}
		said := key
		if key.Kind == yaml.AliasNode {
			said = key.Alias
		}
		// A null for a key is a key all the same.
		name := said.Value
		if said.ShortTag() != "!!null" {
			name = text(said)
		}
		out.Pairs = append(out.Pairs, Pair{name, c.at(key), value})
	}
	out.Twice = twice(out.Pairs)
	if len(merged) == 0 {
		return
	}
	own := map[string]bool{}
	for _, p := range out.Pairs {
		own[p.Key] = true
	}
	for _, m := range merged {
		for _, p := range m.Pairs {
			if !own[p.Key] {
				own[p.Key] = true
				out.Pairs = append(out.Pairs, p)
			}
		}
	}
}
