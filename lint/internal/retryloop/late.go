package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/bound"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
)

// CheckedLate reports whether the region's counter is tested only at the head or
// at the foot of the loop, so that the wait after the last failure leads to no
// attempt. A second look at the counter is most likely the one that avoids it,
// and a wait that not every attempt passes may be meant for something else.
// It returns false for a recursion.
func (r *Region) CheckedLate() bool {
	if r.Loop == nil || !r.Bound.Counter || r.WaitFirst || len(r.Waits) == 0 {
		return false
	}
	var count *ssa.BasicBlock // the only block that looks at the counter
	for b := range r.Loop.Blocks {
		i := dataflow.IfOf(b)
		if i == nil || !bound.CountsIn(r.f.Func, i.Cond, r.Loop) {
			continue
		}
		if count != nil {
			return false
		}
		count = b
	}
	if count == nil {
		return false
	}
	if count != r.Loop.Header && !r.waitsBefore(count) {
		return false
	}
	for _, w := range r.Waits {
		for _, op := range r.Ops {
			if w.Instr.Block() != op.Block() && !op.Block().Dominates(w.Instr.Block()) {
				return false
			}
		}
	}
	return true
}

// waitsBefore reports whether a wait comes before block b in every turn: b is
// the foot of the loop, where the counter is looked at too late.
func (r *Region) waitsBefore(b *ssa.BasicBlock) bool {
	return slices.ContainsFunc(r.Waits, func(w *delay.Wait) bool { return w.Instr.Block() == b || w.Instr.Block().Dominates(b) })
}
