package dataflow

import (
	"go/token"
	"maps"

	"golang.org/x/tools/go/ssa"
)

// flagSteps bounds how many blocks are looked at before a flag is given up:
// paths multiply, and a verdict on a large loop is not worth its time.
const flagSteps = 400

// flagWalk follows the paths of a loop with what is known of its bool
// variables. A plain walk of the graph believes that every branch may go either
// way, and so that a loop with a flag goes on after a success.
// It forks at each unknown branch, so flagSteps bounds its work.
type flagWalk struct {
	l     *Loop
	skip  func(Edge) bool
	ops   map[*ssa.BasicBlock]bool
	steps int
}

// EndsByFlag reports whether a loop that is left through a variable ends after
// the edge e: for i := 0; i < 3 && !ok; i++ { ok = send() == nil }. skip refuses
// the edges of a failure in the turn at hand, and ops are the operations that
// must not run again. What is not certain counts as going on.
func (l *Loop) EndsByFlag(e Edge, skip func(Edge) bool, ops []*ssa.Call) bool {
	w := &flagWalk{l: l, skip: skip, ops: map[*ssa.BasicBlock]bool{}}
	for _, c := range ops {
		w.ops[c.Block()] = true
	}
	return !w.again(e.To(), e.From, map[*ssa.Phi]bool{}, false)
}

// again reports whether an operation may run once more when b is entered from
// pred; turned says that the loop's header has been passed.
func (w *flagWalk) again(b, pred *ssa.BasicBlock, known map[*ssa.Phi]bool, turned bool) bool {
	if w.steps++; w.steps > flagSteps {
		return true
	}
	if !w.l.Blocks[b] || NoReturn(b) {
		return false
	}
	if b == w.l.Header {
		if turned {
			return false // a turn without an operation
		}
		turned = true
	}
	if turned && w.ops[b] {
		return true
	}
	known = enterBlock(b, pred, known)
	for i, s := range b.Succs {
		if br := IfOf(b); br != nil {
			if v, ok := flagValue(br.Cond, known); ok && v != (i == 0) {
				continue
			}
		}
		if !turned && w.skip(Edge{b, i}) {
			continue
		}
		if w.again(s, b, known, turned) {
			return true
		}
	}
	return false
}

// enterBlock returns what is known once the phis of b have taken their values
// from pred. All of them are read before any is written, as SSA has it.
func enterBlock(b, pred *ssa.BasicBlock, known map[*ssa.Phi]bool) map[*ssa.Phi]bool {
	now := maps.Clone(known)
	for _, in := range b.Instrs {
		p, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		delete(now, p)
		for i, from := range b.Preds {
			if from != pred {
				continue
			}
			if v, ok := flagValue(p.Edges[i], known); ok {
				now[p] = v
			}
		}
	}
	return now
}

// flagValue evaluates a bool that is a constant or is known.
// ok is false for anything else, and then both ways are walked.
func flagValue(v ssa.Value, known map[*ssa.Phi]bool) (value, ok bool) {
	switch v := v.(type) {
	case *ssa.Const:
		return ConstBool(v)
	case *ssa.Phi:
		value, ok = known[v]
		return value, ok
	case *ssa.UnOp:
		if v.Op == token.NOT {
			value, ok = flagValue(v.X, known)
			return !value, ok
		}
	}
	return false, false
}
