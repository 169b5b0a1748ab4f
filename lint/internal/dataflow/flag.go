package dataflow

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// flagSteps bounds how many states are looked at before a flag is given up: a
// verdict on a large loop is not worth its time.
const flagSteps = 2000

// flagWalk follows the paths of a loop with what is known of its bool
// variables. A plain walk of the graph believes that every branch may go either
// way, and so that a loop with a flag goes on after a success.
// Paths that meet with the same knowledge go on as one, so that they do not
// multiply.
type flagWalk struct {
	l    *Loop
	skip func(Edge) bool
	ops  map[*ssa.BasicBlock]bool
	bits map[*ssa.Phi]uint // of a flag in what is known; no more than 64 are followed
	seen map[flagState]bool
}

// flags are what is known of bool variables: which of them are, and their values.
type flags struct{ known, value uint64 }

// flagState is where a path has come to, and with what knowledge; turned says that
// the loop's header has been passed.
type flagState struct {
	b      *ssa.BasicBlock
	now    flags
	turned bool
}

// EndsByFlag reports whether a loop that is left through a variable ends after
// the edge e: for i := 0; i < 3 && !ok; i++ { ok = send() == nil }. skip refuses
// the edges of a failure in the turn at hand, and ops are the operations that
// must not run again. What is not certain counts as going on.
func (l *Loop) EndsByFlag(e Edge, skip func(Edge) bool, ops []*ssa.Call) bool {
	w := &flagWalk{l: l, skip: skip, ops: map[*ssa.BasicBlock]bool{}, bits: map[*ssa.Phi]uint{}, seen: map[flagState]bool{}}
	for _, c := range ops {
		w.ops[c.Block()] = true
	}
	return !w.again(e.To(), e.From, flags{}, false)
}

// again reports whether an operation may run once more when b is entered from
// pred.
func (w *flagWalk) again(b, pred *ssa.BasicBlock, now flags, turned bool) bool {
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
	now = w.enter(b, pred, now)
	state := flagState{b, now, turned}
	switch {
	case w.seen[state]:
		return false // its other path tells
	case len(w.seen) > flagSteps:
		return true
	}
	w.seen[state] = true
	for i, s := range b.Succs {
		if br := IfOf(b); br != nil {
			if v, ok := w.value(br.Cond, now); ok && v != (i == 0) {
				continue
			}
		}
		if !turned && w.skip(Edge{b, i}) {
			continue
		}
		if w.again(s, b, now, turned) {
			return true
		}
	}
	return false
}

// enter returns what is known once the phis of b have taken their values from
// pred. All of them are read before any is written, as SSA has it.
func (w *flagWalk) enter(b, pred *ssa.BasicBlock, before flags) flags {
	now := before
	for _, in := range b.Instrs {
		p, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		bit := w.bit(p)
		now.known, now.value = now.known&^bit, now.value&^bit
		for i, from := range b.Preds {
			if from != pred {
				continue
			}
			if v, ok := w.value(p.Edges[i], before); ok {
				now.known |= bit
				if v {
					now.value |= bit
				}
			}
		}
	}
	return now
}

// bit is that of a flag; none for other variables, and for one too many.
func (w *flagWalk) bit(p *ssa.Phi) uint64 {
	if !IsBool(p.Type()) {
		return 0
	}
	n, ok := w.bits[p]
	if !ok {
		n = uint(len(w.bits))
		w.bits[p] = n
	}
	return 1 << n // none beyond the 64th
}

// value evaluates a bool that is a constant or is known.
// ok is false for anything else, and then both ways are walked.
func (w *flagWalk) value(v ssa.Value, now flags) (value, ok bool) {
	switch v := v.(type) {
	case *ssa.Const:
		return ConstBool(v)
	case *ssa.Phi:
		bit := w.bit(v)
		return now.value&bit != 0, now.known&bit != 0
	case *ssa.UnOp:
		if v.Op == token.NOT {
			value, ok = w.value(v.X, now)
			return !value, ok
		}
	}
	return false, false
}
