package retryloop

import "golang.org/x/tools/go/ssa"

// waitFirst reports whether every attempt, the first included, comes after a
// wait of the region.
func waitFirst(s *Scope, l *Loop, waits []*Wait, ops []*ssa.Call) bool {
	if len(waits) == 0 || attemptedBefore(s, l, ops) {
		return false
	}
	for _, w := range waits {
		for _, op := range ops {
			if w.Instr.Block() == op.Block() && before(w.Instr, op) || w.Instr.Block() != op.Block() && w.Instr.Block().Dominates(op.Block()) {
				return true
			}
		}
	}
	return false
}

// attemptedBefore reports whether the operation is called once before the loop:
// err := op(); for err != nil { sleep; err = op() }.
func attemptedBefore(s *Scope, l *Loop, ops []*ssa.Call) bool {
	for _, b := range s.fn.Blocks {
		if l.Blocks[b] || !b.Dominates(l.Header) {
			continue
		}
		for _, in := range b.Instrs {
			c, ok := in.(*ssa.Call)
			if !ok {
				continue
			}
			for _, op := range ops {
				if Callee(op.Common()) != nil && Callee(op.Common()) == Callee(c.Common()) || op.Common().Value == c.Common().Value && !op.Common().IsInvoke() {
					return true
				}
			}
		}
	}
	return false
}

func before(a, b ssa.Instruction) bool {
	for _, in := range a.Block().Instrs {
		if in == a {
			return true
		}
		if in == b {
			return false
		}
	}
	return false
}
