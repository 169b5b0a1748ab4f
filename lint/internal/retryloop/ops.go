package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

func anyHas(sets []map[*ssa.BasicBlock]bool, b *ssa.BasicBlock) bool {
	for _, s := range sets {
		if s[b] {
			return true
		}
	}
	return false
}

func isOp(c *ssa.Call, ops []*ssa.Call) bool {
	return slices.Contains(ops, c)
}

func appendNew(ops, more []*ssa.Call) []*ssa.Call {
	for _, c := range more {
		if !isOp(c, ops) {
			ops = append(ops, c)
		}
	}
	return ops
}
