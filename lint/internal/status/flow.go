package status

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// A flow says with which statuses the blocks and edges of a function can run:
// those for which no condition on the way certainly leads elsewhere. It is the
// flow of the whole function, or of one turn of a loop, which begins and ends
// at the header.
type flow struct {
	loop *dataflow.Loop // nil for the whole function
	in   map[*ssa.BasicBlock]codeset.Set
	out  map[dataflow.Edge]codeset.Set
	// given holds what the phis of the header are, when the turn before decides
	// them.
	given map[*ssa.Phi]known
	// guessed says that a guess decided a branch on the way.
	guessed bool
}

func newFlow(l *dataflow.Loop) *flow {
	return &flow{loop: l, in: map[*ssa.BasicBlock]codeset.Set{}, out: map[dataflow.Edge]codeset.Set{}}
}

// flowRounds bounds how often all blocks are looked at. Real code takes three or
// four rounds; what takes more is believed to run with any status, and the
// evaluation has given up.
const flowRounds = 12

// solve finds the flow that begins at start with some statuses. A condition
// depends on the flow where values merge, and the flow on conditions; both only
// ever grow, so that rounds over the blocks end with what holds.
func (e *eval) solve(f *flow, start *ssa.BasicBlock, entry codeset.Set) {
	f.in[start] = entry
	for round := 0; ; round++ {
		changed := false
		e.spent = e.spent || round >= flowRounds
		for _, b := range e.sc.Fn.Blocks {
			if !f.in[b].Empty() && !dataflow.NoReturn(b) {
				changed = e.leave(f, b, round >= flowRounds) || changed
			}
		}
		if !changed {
			return
		}
	}
}

// leave passes the statuses of a block on to those behind it, and reports
// whether that is news.
func (e *eval) leave(f *flow, b *ssa.BasicBlock, blindly bool) (changed bool) {
	var taken [2]codeset.Set // what does not take the edge
	if br := dataflow.IfOf(b); br != nil && !blindly {
		c := e.cond(br.Cond)
		taken = [2]codeset.Set{c.no, c.yes}
	}
	for i, s := range b.Succs {
		out := f.in[b]
		if i < 2 {
			out = out.Minus(taken[i])
		}
		edge := dataflow.Edge{From: b, I: i}
		if f.loop == nil {
			out = out.And(e.afterTurn(f, edge))
		}
		if out.Minus(f.out[edge]).Empty() {
			continue
		}
		changed = true
		f.out[edge] = f.out[edge].Or(out)
		if f.loop == nil || s != f.loop.Header && f.loop.Blocks[s] {
			f.in[s] = f.in[s].Or(out)
		}
	}
	return changed
}

// afterTurn returns the statuses with which a loop may end at its head, by an edge
// out of it: those of a turn. A loop that makes attempts makes one at least.
func (e *eval) afterTurn(f *flow, edge dataflow.Edge) (turned codeset.Set) {
	l := e.headed(edge.From, edge.To())
	if l == nil {
		return e.all
	}
	for _, pred := range l.Header.Preds {
		for i, s := range pred.Succs {
			if s == l.Header && l.Blocks[pred] {
				turned = turned.Or(f.out[dataflow.Edge{From: pred, I: i}])
			}
		}
	}
	return turned
}

// headed returns the loop that a block is the head of, unless another block lies in
// it; nil for other blocks, and for loops over items, of which there may be none.
func (e *eval) headed(b, outside *ssa.BasicBlock) *dataflow.Loop {
	if l := e.sc.Innermost[b]; l != nil && l.Header == b && !l.Blocks[outside] && !dataflow.ItemLoop(e.sc.Func, l) {
		return l
	}
	return nil
}

// whole returns the flow of the whole function. It is made when it is first
// asked for, and may be asked for while it is made: then it has not grown to
// its end, and neither has what is made of it. The value that asks for it is under
// evaluation, but not for the flow: it would be open there, for good.
func (e *eval) whole() *flow {
	if e.fn == nil {
		e.fn = newFlow(nil)
		turn, leaves, guessed, active, nest := e.turn, e.leaves, e.guessed, e.active, e.nest
		e.turn, e.active, e.nest, e.guessed = nil, map[ssa.Value]bool{}, 0, false
		e.solve(e.fn, e.sc.Fn.Blocks[0], e.all)
		e.fn.guessed = e.guessed
		e.turn, e.leaves, e.guessed, e.active, e.nest = turn, leaves, guessed, active, nest
	}
	return e.fn
}

// live returns the statuses with which control comes to a block from one of its
// predecessors.
func (e *eval) live(b, pred *ssa.BasicBlock) (live codeset.Set) {
	f := e.turn
	if f == nil || !f.loop.Blocks[b] {
		f = e.whole()
	} else if !f.loop.Blocks[pred] {
		return e.all // the loop is entered
	}
	for i, s := range pred.Succs {
		if s == b {
			live = live.Or(f.out[dataflow.Edge{From: pred, I: i}])
		}
	}
	return live
}

// inTurn makes f the turn at hand while it is solved.
func (e *eval) inTurn(f *flow, entry codeset.Set) {
	e.turn = f
	e.solve(f, f.loop.Header, entry)
}

// again returns the statuses after which another turn of l comes to one of ops;
// without ops, to the loop's body. The turn after is followed too: a variable
// that this one sets may end it at its head.
func (e *eval) again(l *dataflow.Loop, ops []*ssa.Call) (again codeset.Set) {
	first := newFlow(l)
	e.inTurn(first, e.all)
	for _, pred := range l.Header.Preds {
		if !l.Blocks[pred] {
			continue
		}
		e.turn = first
		entry := e.live(l.Header, pred)
		if entry.Empty() {
			continue
		}
		next := newFlow(l)
		next.given = e.carried(l.Header, pred)
		e.inTurn(next, entry)
		reached := func(b *ssa.BasicBlock) { again = again.Or(next.in[b]) }
		for _, op := range ops {
			reached(op.Block())
		}
		if len(ops) > 0 {
			continue
		}
		for _, s := range l.Header.Succs {
			if l.Blocks[s] {
				reached(s)
			}
		}
	}
	e.turn = first
	return again
}

// carried returns what the phis of a header are when it is entered from pred.
func (e *eval) carried(header, pred *ssa.BasicBlock) map[*ssa.Phi]known {
	given := map[*ssa.Phi]known{}
	k := slices.Index(header.Preds, pred)
	for _, in := range header.Instrs {
		p, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		given[p] = e.know(p.Edges[k])
	}
	return given
}
