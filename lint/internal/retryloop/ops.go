package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// anyHas reports whether one of the sets holds b.
func anyHas(sets []map[*ssa.BasicBlock]bool, b *ssa.BasicBlock) bool {
	return slices.ContainsFunc(sets, func(s map[*ssa.BasicBlock]bool) bool { return s[b] })
}

// isOp reports whether c is one of the operations.
// It compares calls, not callees: the same function may be called twice.
func isOp(c *ssa.Call, ops []*ssa.Call) bool {
	return slices.Contains(ops, c)
}

// appendNew adds the operations that are not there yet. An operation may be
// tested more than once: for its error, and for its status.
// The order stays that of the code, since messages name the first ones.
func appendNew(ops, more []*ssa.Call) []*ssa.Call {
	for _, c := range more {
		if !isOp(c, ops) {
			ops = append(ops, c)
		}
	}
	return ops
}
