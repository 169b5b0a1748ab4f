package status

import (
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// looksUp evaluates set[status], for a set of the package that is a map
// literal.
func (w *world) looksUp(l *ssa.Lookup) truth {
	return w.contains(l.X, l.Index)
}

// contains evaluates whether a set holds the status: a map or a slice literal
// that a variable of the package, or the value itself, is made of. A set of
// which all is known decides the branch for certain.
func (w *world) contains(set, v ssa.Value) truth {
	s, known := w.statusValue(v)
	if !known {
		return maybe
	}
	members, known := membersOf(set)
	if !known {
		return maybe
	}
	w.used = true
	return truthOf(members[s])
}

// searchWord marks functions that look for an element of a list.
var searchWord = regexp.MustCompile(`(?i)contains|includes|^has|^in([A-Z]|$)|member|oneOf|anyOf`)

// searches evaluates a function of the package that looks for the status in a
// slice: containsInt([]int{429, 503}, status). Its name says what it does; its
// loop could not be evaluated.
// The name decides, since the bodies of such helpers hold loops.
func (w *world) searches(c *ssa.Call) truth {
	args := c.Common().Args
	if len(args) != 2 || !searchWord.MatchString(dataflow.CalleeName(c.Common())) {
		return maybe
	}
	set, v := args[0], args[1]
	if _, ok := set.Type().Underlying().(*types.Slice); !ok {
		set, v = v, set
	}
	return w.contains(set, v)
}

// membersOf returns the integers in a map or slice literal, or in the package
// variable that is initialized with one. Keys whose value is false are none.
// The set is known only if all of it is: one entry that is computed, or a set
// that a function builds, leaves it open.
func membersOf(set ssa.Value) (members map[int64]bool, ok bool) {
	switch v := set.(type) {
	case *ssa.UnOp:
		g, ok := v.X.(*ssa.Global)
		if !ok || g.Pkg == nil {
			return nil, false
		}
		return membersOf(initial(g))
	case *ssa.MakeMap:
		return mapMembers(v)
	case *ssa.Slice:
		return sliceMembers(v)
	case *ssa.ChangeType:
		return membersOf(v.X)
	}
	return nil, false
}

// initial returns what the package's initialization stores in g, or nil. A
// variable that is set elsewhere too is believed to keep what it began with.
// Later stores are not looked for: a table of statuses is rarely changed.
func initial(g *ssa.Global) (v ssa.Value) {
	init := g.Pkg.Func("init")
	if init == nil {
		return nil
	}
	for s := range dataflow.Instrs[*ssa.Store](init) {
		if s.Addr == ssa.Value(g) {
			v = s.Val
		}
	}
	return v
}

// mapMembers reads the keys of a map literal off its updates.
func mapMembers(m *ssa.MakeMap) (map[int64]bool, bool) {
	members := map[int64]bool{}
	for u := range dataflow.Refs[*ssa.MapUpdate](m) {
		n, ok := dataflow.ConstInt(u.Key)
		if !ok {
			return nil, false
		}
		if member, ok := dataflow.ConstBool(u.Value); member || !ok {
			members[n] = true
		}
	}
	return members, true
}

// sliceMembers reads the elements of a slice literal off the stores to its array.
func sliceMembers(s *ssa.Slice) (map[int64]bool, bool) {
	a, ok := s.X.(*ssa.Alloc)
	if !ok {
		return nil, false
	}
	members := map[int64]bool{}
	for ia := range dataflow.Refs[*ssa.IndexAddr](a) {
		for u := range dataflow.Refs[ssa.Instruction](ia) {
			st, ok := u.(*ssa.Store)
			if !ok {
				return nil, false
			}
			n, ok := dataflow.ConstInt(st.Val)
			if !ok {
				return nil, false
			}
			members[n] = true
		}
	}
	return members, true
}
