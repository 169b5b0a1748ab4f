package delay

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// First reports whether every attempt, the first included, comes after a wait of
// the loop. A retry has no reason to wait before its first attempt; what does is
// a poller more often than not, and findings about it are less sure.
// It needs only one wait and one operation in that order.
func First(s *fact.Scope, l *dataflow.Loop, waits []*Wait, ops []*ssa.Call) bool {
	if len(waits) == 0 || attemptedBefore(s, l, ops) {
		return false
	}
	for _, w := range waits {
		if beginsWithNone(w.D, l) {
			continue
		}
		for _, op := range ops {
			if dataflow.Before(w.Set(l), op) {
				return true
			}
		}
	}
	return false
}

// beginsWithNone reports whether a wait is zero in the first turn.
func beginsWithNone(d ssa.Value, l *dataflow.Loop) bool {
	p, ok := d.(*ssa.Phi)
	if !ok || p.Block() != l.Header {
		return false
	}
	for i, e := range p.Edges {
		if n, isInt := dataflow.ConstInt(e); !l.Blocks[p.Block().Preds[i]] && isInt && n == 0 {
			return true
		}
	}
	return false
}

// attemptedBefore reports whether the operation is called once before the loop:
// err := op(); for err != nil { sleep; err = op() }.
// Such a loop waits between attempts in spite of its shape.
func attemptedBefore(s *fact.Scope, l *dataflow.Loop, ops []*ssa.Call) bool {
	for c := range dataflow.Instrs[*ssa.Call](s.Fn) {
		if l.Contains(c) || !c.Block().Dominates(l.Header) {
			continue
		}
		for _, op := range ops {
			if dataflow.Callee(op.Common()) != nil && dataflow.Callee(op.Common()) == dataflow.Callee(c.Common()) || op.Common().Value == c.Common().Value && !op.Common().IsInvoke() {
				return true
			}
		}
	}
	return false
}
