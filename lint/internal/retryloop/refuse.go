package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// refuses reports whether the success of t ends the loop by what the operation
// has yielded, and another attempt follows where that is not accepted: an empty
// answer, a bad one. blocks are what the success leads to.
func (r *Region) refuses(t *Test, blocks map[*ssa.BasicBlock]bool) bool {
	for b := range blocks {
		br := dataflow.IfOf(b)
		if br == nil || !r.mayLeave(b) {
			continue
		}
		if slices.ContainsFunc(t.Ops, func(op *ssa.Call) bool { return yieldedBy(br.Cond, op, 0) }) {
			return true
		}
	}
	return false
}

// yieldedBy reports whether v is computed from a result of op, or from what op was
// given to write to. Six steps are enough for a field of a field in a call.
func yieldedBy(v ssa.Value, op *ssa.Call, depth int) bool {
	if v == ssa.Value(op) {
		return true
	}
	if a, ok := v.(*ssa.Alloc); ok {
		return slices.ContainsFunc(op.Common().Args, func(arg ssa.Value) bool { return dataflow.Strip(arg) == ssa.Value(a) })
	}
	in, ok := v.(ssa.Instruction)
	if !ok || depth > 6 || dataflow.IsError(v.Type()) {
		return false
	}
	return slices.ContainsFunc(in.Operands(nil), func(o *ssa.Value) bool { return *o != nil && yieldedBy(*o, op, depth+1) })
}
