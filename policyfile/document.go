package policyfile

import (
	"bytes"
	"errors"
	"io"
	"time"

	"go.yaml.in/yaml/v4"
)

// decoder reads one file and gathers its faults.
type decoder struct {
	name   string
	now    time.Time
	faults []*Fault
	more   int
	// inspect leaves waivers to the reader.
	inspect bool
	seen    map[string]Position // the dependencies read so far
}

func (d *decoder) at(n *yaml.Node) Position {
	return Position{File: d.name, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

// document returns the root of the single document in data, or nil after a
// fault.
func (d *decoder) document(data []byte) *yaml.Node {
	start := Position{File: d.name, Line: 1, Column: 1}
	if len(data) > MaxSize {
		d.faultAt(start, "", "the file is larger than %d MiB", MaxSize>>20)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.faultAt(start, "", "%v", err)
		return nil
	}
	var doc, next yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		d.faultAt(start, "", "the file is empty")
		return nil
	} else if err != nil {
		d.syntax(err)
		return nil
	}
	if err := loader.Load(&next); err == nil {
		d.fault(&next, "", "a second document: a policy file holds one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	if len(doc.Content) != 1 {
		d.faultAt(start, "", "the file is empty")
		return nil
	}
	root := doc.Content[0]
	if !d.boundedAliases(root) {
		return nil
	}
	return root
}

// syntax notes a fault that the YAML reader found.
func (d *decoder) syntax(err error) {
	at := Position{File: d.name, Line: 1, Column: 1}
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		d.faultAt(at, "", "not YAML: %v", err)
		return
	}
	if e.Mark.Line > 0 {
		at.Line, at.Column = e.Mark.Line, max(e.Mark.Column, 1)
	}
	context := ""
	if e.ContextMsg != "" {
		context = e.ContextMsg + ", "
	}
	d.faultAt(at, "", "not YAML: %s%s", context, e.Message)
}

// maxExpanded is the number of nodes that a file may come to when every alias
// is replaced by what it stands for.
const maxExpanded = 500_000

// boundedAliases reports whether the aliases under root end, and end soon.
func (d *decoder) boundedAliases(root *yaml.Node) bool {
	m := measure{sizes: map[*yaml.Node]int{}}
	if size := m.size(root); m.loop != nil {
		d.fault(m.loop, "", "alias *%s contains itself", m.loop.Value)
		return false
	} else if size > maxExpanded {
		d.fault(root, "", "aliases multiply the file beyond %d values", maxExpanded)
		return false
	}
	return true
}

// measure counts nodes with aliases expanded, each anchored node once.
type measure struct {
	sizes map[*yaml.Node]int // of anchored nodes; pending while being counted
	loop  *yaml.Node         // an alias within its own anchor
}

const pending = -1

func (m *measure) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		size, known := m.sizes[n.Alias]
		if size == pending {
			m.loop = n
			return 0
		}
		if !known {
			size = m.size(n.Alias)
		}
		return size
	}
	if n.Anchor != "" {
		m.sizes[n] = pending
	}
	size := 1
	for _, c := range n.Content {
		size = min(size+m.size(c), maxExpanded+1)
	}
	if n.Anchor != "" {
		m.sizes[n] = size
	}
	return size
}
