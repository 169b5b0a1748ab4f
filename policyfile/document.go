package policyfile

import (
	"bytes"
	"errors"
	"io"
	"time"

	"go.yaml.in/yaml/v4"
)

// decoder reads one file and gathers its faults. Reading goes on after a
// fault, so that one run reports all of them.
type decoder struct {
	name string
	// now decides whether a waiver has expired. It is read once, so that
	// all waivers of a file are judged by the same moment.
	now    time.Time
	faults []*Fault
	// more counts faults beyond those that are kept.
	more int
	// deprecated are the keys that were read under a former name.
	deprecated []*Fault
	// inspect is set for those who judge a file and do not run by it:
	// waivers are not applied.
	inspect bool
	// elsewhere is set for those who are not where the service runs: values
	// from the environment are not looked up.
	elsewhere bool
	seen      map[string]Position // the dependencies read so far
}

// at is the position of a node. Nodes that were made and not read have none
// and are placed on line 1.
func (d *decoder) at(n *yaml.Node) Position {
	return Position{File: d.name, Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

// document returns the root of the single document in data, or nil after a
// fault. What it returns is bounded in size, and its aliases end: the
// readers that follow need not check either again.
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
		d.syntax(err, data)
		return nil
	}
	// A second document would be ignored by many readers, and applied by
	// some.
	if err := loader.Load(&next); err == nil {
		d.fault(&next, "", "a second document: a policy file holds one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, data)
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

// syntax records a fault that the YAML reader found. A position outside the
// file counts as its first line.
func (d *decoder) syntax(err error, data []byte) {
	at := Position{File: d.name, Line: 1, Column: 1}
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		d.faultAt(at, "", "not YAML: %v", err)
		return
	}
	if e.Mark.Line > 0 {
		at.Line, at.Column = e.Mark.Line, max(e.Mark.Column, 1)
	}
	if tabAt(data, at) {
		d.faultAt(at, "", "not YAML: there is a tab, and lines are indented with spaces")
		return
	}
	context := ""
	if e.ContextMsg != "" {
		context = e.ContextMsg + ", "
	}
	d.faultAt(at, "", "not YAML: %s%s", context, e.Message)
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

// measure counts nodes with aliases expanded. Each anchored node is counted
// once and its size kept, so that the counting itself takes linear time.
type measure struct {
	sizes map[*yaml.Node]int // of anchored nodes; pending while being counted
	loop  *yaml.Node         // an alias within its own anchor
}

// pending marks an anchored node whose size is being computed: to meet it
// again is a loop.
const pending = -1

// size is saturated just above maxExpanded, so that no sum overflows.
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
