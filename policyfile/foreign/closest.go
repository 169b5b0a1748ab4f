package foreign

import (
	"path/filepath"
	"strings"

	"github.com/forbear-go/forbear/policyfile/internal/tree"
)

// named finds parts of a configuration by their names, across files.
type named map[string][]entry

// entry is a node with the part that it stands in.
type entry struct {
	part *Part
	node *tree.Node
}

// add records a node under its name. One that is not there is none.
func (n named) add(part *Part, name string, node *tree.Node) {
	if node != nil {
		n[name] = append(n[name], entry{part, node})
	}
}

// in returns the node of a name that a part means; see closest.
func (n named) in(part *Part, name string) (found *tree.Node, several bool) {
	return closest(part, n[name])
}

// closest returns the node that a part means of several with one name: the nearest.
// several reports that more than one is as near, and that they say different things, so
// that none can be told to be meant.
func closest(part *Part, all []entry) (found *tree.Node, several bool) {
	for _, n := range nearestOf(part, all) {
		if found == nil {
			found = n
		} else if flat(n) != flat(found) {
			return nil, true
		}
	}
	return found, false
}

// nearestOf returns the nodes that stand nearest to a part: those of the same text before
// those of the same file, and then those with the most folders in common, since copies
// for other environments stand in other folders.
func nearestOf(part *Part, all []entry) (found []*tree.Node) {
	best := 0
	for _, e := range all {
		if d := part.nearness(e.part); d > best || found == nil {
			best, found = d, []*tree.Node{e.node}
		} else if d == best {
			found = append(found, e.node)
		}
	}
	return found
}

// nearness is the greater, the nearer two parts stand to each other.
func (p *Part) nearness(other *Part) int {
	const same = 1 << 20 // more than a path has folders
	if p.Name == other.Name {
		if p.inner == other.inner {
			return same + 1
		}
		return same
	}
	a, b, common := p.folders(), other.folders(), 0
	for common < min(len(a), len(b)) && a[common] == b[common] {
		common++
	}
	return common<<10 - len(b) // what lies deeper is for others
}

// folders are those that the file lies in, from the outermost on. They are kept: a part
// may be compared with thousands of others.
func (p *Part) folders() []string {
	if p.dirs == nil {
		p.dirs = []string{}
		if dir := filepath.ToSlash(filepath.Dir(filepath.Clean(p.Name))); dir != "." {
			p.dirs = strings.Split(dir, "/")
		}
	}
	return p.dirs
}
