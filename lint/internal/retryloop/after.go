package retryloop

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// AfterSuccess reports whether in may run in a turn that succeeds, after the
// operations: a wait there paces the work as well as its retries.
func (r *Region) AfterSuccess(in ssa.Instruction) bool {
	if r.Loop == nil {
		return false
	}
	failing := map[dataflow.Edge]bool{}
	for _, t := range r.Tests {
		failing[t.fail()] = true
	}
	for _, t := range r.Tests {
		if blocks, _ := r.Loop.Walk(t.ok().To(), func(e dataflow.Edge) bool { return failing[e] }); blocks[in.Block()] {
			return true
		}
	}
	return false
}
