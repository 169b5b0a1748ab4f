package strict

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v4"
)

// Reader reads one file and gathers its faults. Reading goes on after a
// fault, so that one run reports all of them.
type Reader struct {
	// Name stands for the file in faults.
	Name   string
	Faults []*Fault
	// More counts faults beyond those that are kept.
	More int
	// Blank says that an empty file is read as an empty mapping, and is not a fault.
	Blank bool
	// Former, where it is set, knows keys under former names. It returns the present
	// name of a key of mapping n that is not known.
	Former func(n, key *yaml.Node, what string, known Fields) (string, bool)
}

// At is the position of a node. Nodes that were made and not read have none
// and are placed on line 1.
func (r *Reader) At(n *yaml.Node) Position {
	return Position{File: r.Name, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

// Document returns the root of the single document in data, which is of most bytes at
// most, or nil after a fault. What it returns is bounded in size, and its aliases end: the
// readers that follow need not check either again.
func (r *Reader) Document(data []byte, most int) *yaml.Node {
	start := Position{File: r.Name, Line: 1, Column: 1}
	if len(data) > most {
		r.FaultAt(start, "the file is larger than %d MiB", most>>20)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.FaultAt(start, "%v", err)
		return nil
	}
	var doc, next yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		if r.Blank {
			return &yaml.Node{Kind: yaml.MappingNode}
		}
		r.FaultAt(start, "the file is empty: forbear init writes one to start from")
		return nil
	} else if err != nil {
		r.syntax(err, data)
		return nil
	}
	// A second document would be ignored by many readers, and applied by
	// some.
	if err := loader.Load(&next); err == nil {
		r.Fault(&next, "a second YAML document: the file may hold only one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err, data)
		return nil
	}
	if len(doc.Content) != 1 {
		r.FaultAt(start, "the file is empty: forbear init writes one to start from")
		return nil
	}
	root := doc.Content[0]
	if !r.boundedAliases(root) {
		return nil
	}
	return root
}

// syntax records a fault that the YAML reader found. A position outside the
// file counts as its first line.
func (r *Reader) syntax(err error, data []byte) {
	at := Position{File: r.Name, Line: 1, Column: 1}
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.FaultAt(at, "not YAML: %v", err)
		return
	}
	if e.Mark.Line > 0 {
		at.Line, at.Column = e.Mark.Line, max(e.Mark.Column, 1)
	}
	if tabAt(data, at) {
		r.FaultAt(at, "not YAML: a line is indented with a tab: use spaces")
		return
	}
	context := ""
	if e.ContextMsg != "" {
		context = e.ContextMsg + ", "
	}
	r.FaultAt(at, "not YAML: %s%s", context, e.Message)
}

// tabAt reports whether the text at a position is indented with a tab there.
func tabAt(data []byte, at Position) bool {
	line := 1
	for text := range bytes.Lines(data) {
		if line == at.Line {
			indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
			return at.Column <= len(indent) && indent[at.Column-1] == '\t'
		}
		line++
	}
	return false
}

// maxExpanded bounds the nodes that a file may come to when every alias is
// replaced by what it stands for. A few hundred bytes of nested aliases can
// otherwise expand to gigabytes ("billion laughs").
const maxExpanded = 500_000

// boundedAliases reports whether the aliases under root end, and end soon. What stands behind
// an anchor is counted once, and its size kept, so that the counting itself takes linear time.
func (r *Reader) boundedAliases(root *yaml.Node) bool {
	const pending = -1 // the size of what is being counted: to meet it again is a loop
	sizes := map[*yaml.Node]int{}
	var loop *yaml.Node
	var size func(n *yaml.Node) int
	size = func(n *yaml.Node) int {
		of := n
		if n.Kind == yaml.AliasNode {
			of = n.Alias
		}
		if known, met := sizes[of]; known == pending {
			loop = n
			return 0
		} else if met {
			return known
		}
		anchored := of.Anchor != ""
		if anchored {
			sizes[of] = pending
		}
		sum := 1
		for _, c := range of.Content {
			sum = min(sum+size(c), maxExpanded+1) // so that no sum overflows
		}
		if anchored {
			sizes[of] = sum
		}
		return sum
	}
	if whole := size(root); loop != nil {
		r.Fault(loop, "alias *%s contains itself", loop.Value)
		return false
	} else if whole > maxExpanded {
		r.Fault(root, "aliases expand the file beyond %d values", maxExpanded)
		return false
	}
	return true
}
