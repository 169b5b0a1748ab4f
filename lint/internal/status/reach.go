package status

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// turn returns the blocks of one turn of l that can run under the assumption;
// it calls again when another turn begins.
// The header itself is where the walk starts and ends.
func (w *world) turn(l *dataflow.Loop, again func()) map[*ssa.BasicBlock]bool {
	return w.reach(l.Header, func(b *ssa.BasicBlock) bool {
		if b == l.Header {
			again()
		}
		return b == l.Header || !l.Blocks[b]
	})
}

// reach returns the blocks that can run under the assumption, from start, and
// never past a block that stop names. A branch whose condition is certain is
// followed one way, any other both ways.
// It is the core of the evaluation: what it leaves out cannot happen after that
// response.
func (w *world) reach(start *ssa.BasicBlock, stop func(*ssa.BasicBlock) bool) map[*ssa.BasicBlock]bool {
	seen := map[*ssa.BasicBlock]bool{}
	work := []*ssa.BasicBlock{start}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[b] {
			continue
		}
		seen[b] = true
		if dataflow.NoReturn(b) {
			continue
		}
		succs := b.Succs
		if i := dataflow.IfOf(b); i != nil {
			// A merged condition is evaluated by reach itself, so that it must not be
			// asked for again further down.
			if _, isPhi := i.Cond.(*ssa.Phi); !isPhi || w.depth == 0 {
				switch w.condAt(i) {
				case yes:
					succs = succs[:1]
				case no:
					succs = succs[1:]
				}
			}
		}
		for _, s := range succs {
			if stop == nil || !stop(s) {
				work = append(work, s)
			}
		}
	}
	return seen
}

// condAt evaluates the condition of a branch. The depth is raised for a merged
// one, which keeps its evaluation from beginning another of its kind.
// Without that, two merged conditions that depend on each other would never end.
func (w *world) condAt(i *ssa.If) truth {
	if p, ok := i.Cond.(*ssa.Phi); ok {
		w.depth += 2
		t := w.phi(p)
		w.depth -= 2
		return t
	}
	return w.cond(i.Cond)
}

// result evaluates what fn returns: its bool result, or whether result index
// is a nil error. Only an agreement of all live returns counts.
// A function that never returns yields no evidence.
func (w *world) result(fn *ssa.Function, index int, wantNil bool) truth {
	// Returns that the assumption rules out do not count.
	live := w.reach(fn.Blocks[0], nil)
	var returns agreement
	for b := range live {
		ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
		if !ok {
			continue
		}
		var t truth
		switch {
		case wantNil:
			if index >= len(ret.Results) || !dataflow.IsError(ret.Results[index].Type()) {
				return maybe
			}
			t = w.isNil(w.livePhi(cellValue(ret.Results[index]), live), 0)
		case len(ret.Results) == 0:
			return maybe
		default:
			t = w.cond(w.livePhi(cellValue(ret.Results[0]), live))
		}
		if !returns.add(t) {
			return maybe
		}
	}
	return returns.truth
}

// cellValue follows the read of a variable that could not be lifted (a result
// of a function that defers) to the last store before it, through blocks with a
// single predecessor. Where paths meet, the read is returned as it is.
// Six blocks are enough for the code that a defer leaves between them.
func cellValue(v ssa.Value) ssa.Value {
	u, ok := v.(*ssa.UnOp)
	if !ok || u.Op != token.MUL {
		return v
	}
	if _, ok := u.X.(*ssa.Alloc); !ok {
		return v
	}
	b := u.Block()
	at := len(b.Instrs)
	for i, in := range b.Instrs {
		if in == ssa.Instruction(u) {
			at = i
		}
	}
	for range 6 {
		for i := at - 1; i >= 0; i-- {
			if s, ok := b.Instrs[i].(*ssa.Store); ok && s.Addr == u.X {
				return s.Val
			}
		}
		if len(b.Preds) != 1 {
			return v
		}
		b = b.Preds[0]
		at = len(b.Instrs)
	}
	return v
}

// livePhi replaces a phi that has one live edge with that edge's value: the
// result of a function that sets it on several paths, of which one is left.
// A phi with several live edges is returned as it is.
func (w *world) livePhi(v ssa.Value, live map[*ssa.BasicBlock]bool) ssa.Value {
	p, ok := v.(*ssa.Phi)
	if !ok {
		return v
	}
	var only ssa.Value
	for i, e := range p.Edges {
		if !live[p.Block().Preds[i]] || !w.edgeLive(p.Block().Preds[i], p.Block()) {
			continue
		}
		if only != nil && only != e {
			return v
		}
		only = e
	}
	if only == nil {
		return v
	}
	return only
}
