package tree

import (
	"errors"
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/forbear-go/forbear/policyfile"
)

// TOML parses a TOML document. It checks the grammar, and not that a key is defined
// once: what stands twice is marked as in the other formats. An error is a
// [*policyfile.Fault].
func TOML(name string, data []byte) (*Node, error) {
	t := &tomlReader{name: name, keys: keyIndex{}}
	for i, c := range data {
		if c == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	root := &Node{Kind: Map, At: t.at(0)}
	table := root
	t.parser.Reset(data)
	for t.parser.NextExpression() {
		switch e := t.parser.Expression(); e.Kind {
		case unstable.Table:
			table = t.table(root, e, false)
		case unstable.ArrayTable:
			table = t.table(root, e, true)
		case unstable.KeyValue:
			t.pair(table, e, 0)
		}
		if t.deep {
			return nil, &policyfile.Fault{Position: t.at(0), Message: "not TOML: too many values within each other"}
		}
	}
	if err := t.parser.Error(); err != nil {
		at := t.at(0)
		// What is highlighted is a part of the data, as a rule.
		if e, ok := errors.AsType[*unstable.ParserError](err); ok && cap(e.Highlight) > 0 && cap(e.Highlight) <= cap(data) {
			at = t.at(min(cap(data)-cap(e.Highlight), len(data)))
		}
		return nil, &policyfile.Fault{Position: at, Message: "not TOML: " + err.Error()}
	}
	root.Walk(func(n *Node) bool {
		n.Twice = twice(n.Pairs)
		return true
	})
	return root, nil
}

// tomlReader builds the tree. lines are the offsets at which lines begin.
type tomlReader struct {
	name   string
	parser unstable.Parser
	lines  []int
	deep   bool
	keys   keyIndex
}

// at is the position of an offset.
func (t *tomlReader) at(offset int) policyfile.Position {
	offset = max(offset, 0)
	line := sort.SearchInts(t.lines, offset+1)
	start := 0
	if line > 0 {
		start = t.lines[line-1]
	}
	return policyfile.Position{File: t.name, Line: line + 1, Column: offset - start + 1}
}

// place is where a node of the parser stands, or else where its key does.
func (t *tomlReader) place(n *unstable.Node, key policyfile.Position) policyfile.Position {
	if n.Raw.Length == 0 {
		return key
	}
	return t.at(int(n.Raw.Offset))
}

// table returns the table that a header names: the last one of a list of tables, or
// a new one.
func (t *tomlReader) table(n *Node, header *unstable.Node, list bool) *Node {
	depth := 0
	for it := header.Key(); it.Next(); depth++ {
		if depth > maxDepth {
			t.deep = true
			return n
		}
		key := it.Node()
		at := t.at(int(key.Raw.Offset))
		if !list || !it.IsLast() {
			n = t.keys.into(n, string(key.Data), at)
			continue
		}
		all := t.keys.get(n, string(key.Data))
		if all == nil || all.Kind != List {
			all = &Node{Kind: List, At: at}
			t.keys.add(n, Pair{string(key.Data), at, all})
		}
		n = &Node{Kind: Map, At: at}
		all.Items = append(all.Items, n)
	}
	return n
}

// pair adds a key with its value, below the tables that a dotted key names.
func (t *tomlReader) pair(n *Node, e *unstable.Node, depth int) {
	for it := e.Key(); it.Next(); depth++ {
		if depth > maxDepth {
			t.deep = true
			return
		}
		key := it.Node()
		at := t.at(int(key.Raw.Offset))
		if !it.IsLast() {
			n = t.keys.into(n, string(key.Data), at)
			continue
		}
		t.keys.add(n, Pair{string(key.Data), at, t.value(e.Value(), at, depth)})
	}
}

func (t *tomlReader) value(v *unstable.Node, key policyfile.Position, depth int) *Node {
	n := &Node{At: t.place(v, key)}
	if depth > maxDepth {
		t.deep = true
		return n
	}
	switch v.Kind {
	case unstable.Array:
		n.Kind = List
		for it := v.Children(); it.Next(); {
			n.Items = append(n.Items, t.value(it.Node(), n.At, depth+1))
		}
	case unstable.InlineTable:
		n.Kind = Map
		for it := v.Children(); it.Next(); {
			t.pair(n, it.Node(), depth+1)
		}
	default:
		n.Value = string(v.Data)
	}
	return n
}
