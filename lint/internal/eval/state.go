package eval

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// state is what holds at a point of the code.
type state struct {
	heap  *table[string]
	known *table[ssa.Value] // what branches have told on the way here
	waits []Waits
	// doubt is set behind a branch that depends on more of the answer than is known:
	// what differs by the way depends on it too.
	doubt bool
	// tried is set behind the operation, within a turn.
	tried bool
}

// newState is the state at the start of a run.
func newState() *state {
	return &state{heap: newTable[string](), known: newTable[ssa.Value](), waits: []Waits{{}}}
}

func (s *state) clone() *state {
	return &state{heap: s.heap.share(), known: s.known.share(), waits: slices.Clip(s.waits), doubt: s.doubt, tried: s.tried}
}

// merge joins another state into s, and reports whether s changed. Past a number of
// visits what changes is Unknown.
func (s *state) merge(o *state, widen bool) (changed bool) {
	if !s.heap.same(o.heap) {
		for k, e := range s.heap.all() {
			if _, ok := o.heap.get(k); ok {
				continue
			}
			if v, ok := o.unwritten(k); ok && v.key() != e.key {
				s.set(k, join(e.v, v))
				changed = true
			}
		}
		for k, e := range o.heap.all() {
			old, ok := s.heap.get(k)
			if !ok {
				if v, held := s.unwritten(k); held {
					e.v = join(v, e.v)
					e.key = e.v.key()
				}
			}
			switch {
			case !ok:
				s.heap.put(k, e)
				changed = true
			case old.key != e.key:
				n := join(old.v, e.v)
				if widen {
					n = Unknown{Told: Told(n)}
				}
				if key := n.key(); key != old.key {
					s.heap.put(k, entry{n, key})
					changed = true
				}
			}
		}
	}
	if !s.known.same(o.known) {
		for k, e := range s.known.all() {
			if w, ok := o.known.get(k); !ok || w.key != e.key {
				s.known.drop(k)
				changed = true
			}
		}
	}
	for _, w := range o.waits {
		if !slices.ContainsFunc(s.waits, func(x Waits) bool { return x.key() == w.key() }) && len(s.waits) < 12 {
			s.waits = append(slices.Clip(s.waits), w)
			changed = true
		}
	}
	if o.doubt && !s.doubt || o.tried && !s.tried {
		s.doubt, s.tried = s.doubt || o.doubt, s.tried || o.tried
		changed = true
	}
	return changed
}

// unwritten is what a cell holds that was not written on the way here: ok is false for
// one that was not there.
func (s *state) unwritten(cell string) (v Value, ok bool) {
	if strings.HasPrefix(cell, "new ") || strings.ContainsAny(cell, "[#!") || strings.HasSuffix(cell, ".D") || strings.HasSuffix(cell, ".ticker") {
		return nil, false
	}
	if rest, ok := strings.CutPrefix(cell, "item "); ok {
		return Item{rest}, true
	}
	return Sym{Name: cell}, true
}

// tell notes what a branch has told of a value.
func (s *state) tell(v ssa.Value, is Value) { s.known.put(v, entry{is, is.key()}) }

// cell is what a cell holds.
func (s *state) cell(name string) (Value, bool) {
	e, ok := s.heap.get(name)
	return e.v, ok
}

// set writes a cell.
func (s *state) set(cell string, v Value) { s.heap.put(cell, entry{v, v.key()}) }
