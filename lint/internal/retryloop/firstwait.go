package retryloop

import "golang.org/x/tools/go/ssa"

// waitFirst reports whether every attempt, the first included, comes after a
// wait of the region.
func (f *finder) waitFirst(r *Region) bool {
	if len(r.Waits) == 0 || f.attemptedBefore(r) {
		return false
	}
	for _, w := range r.Waits {
		for _, op := range r.Ops {
			if w.Instr.Block() == op.Block() && before(w.Instr, op) || w.Instr.Block() != op.Block() && w.Instr.Block().Dominates(op.Block()) {
				return true
			}
		}
	}
	return false
}

// attemptedBefore reports whether the operation is called once before the loop:
// err := op(); for err != nil { sleep; err = op() }.
func (f *finder) attemptedBefore(r *Region) bool {
	for _, b := range f.fn.Blocks {
		if r.Loop.Blocks[b] || !b.Dominates(r.Loop.Header) {
			continue
		}
		for _, in := range b.Instrs {
			c, ok := in.(*ssa.Call)
			if !ok {
				continue
			}
			for _, op := range r.Ops {
				if callee(op.Common()) != nil && callee(op.Common()) == callee(c.Common()) || op.Common().Value == c.Common().Value && !op.Common().IsInvoke() {
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
