package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/send"
	"github.com/forbear-go/forbear/lint/internal/status"
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

// notAccepted returns the edges on which the loop goes on with what a function says
// of a response that an operation of the tests has yielded, or of its status, where
// the other edge ends it. What the function asks for is not known, but it tells
// failures from successes, as a look at the status does.
func (r *Region) notAccepted(tests []*Test) (edges []dataflow.Edge) {
	for _, b := range r.f.Fn.Blocks {
		br := dataflow.IfOf(b)
		if br == nil || !r.Loop.Blocks[b] || !r.mayLeave(b) || !r.asksOfResponse(br.Cond, tests) {
			continue
		}
		stays := dataflow.Edge{From: b}
		if _, again := r.Loop.Walk(stays.To(), nil); !again {
			stays.I = 1
		}
		edges = append(edges, stays)
	}
	return edges
}

// asksOfResponse reports whether a condition is what a call says that is given a
// response of an operation of the tests, or its status.
func (r *Region) asksOfResponse(cond ssa.Value, tests []*Test) bool {
	if not, ok := cond.(*ssa.UnOp); ok {
		cond = not.X
	}
	c, ok := originOf(cond).(*ssa.Call)
	return ok && slices.ContainsFunc(c.Common().Args, func(v ssa.Value) bool {
		return (send.IsResponse(v.Type()) || status.IsStatus(v)) && slices.ContainsFunc(tests, func(t *Test) bool {
			return slices.ContainsFunc(t.Ops, func(op *ssa.Call) bool { return op != c && yieldedBy(v, op, 0) })
		})
	})
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
