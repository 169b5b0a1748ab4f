package retryloop

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Polls reports whether a callback of a retry helper waits for a state: after its
// operations have succeeded it fails with an error of its own making, "not yet".
// Like a loop that goes on after a success, it is no retry of an operation, and
// its interval may well be fixed. A callback that looks at the status of a
// response is left out, since the failure is in the status then.
func (r *Result) Polls(fn *ssa.Function) bool {
	if len(fn.Blocks) == 0 || r.Judge.LooksAtStatus(fn) {
		return false
	}
	s := r.Known.Scope(fn)
	// The blocks that follow the success of an operation.
	var after []*ssa.BasicBlock
	for _, b := range fn.Blocks {
		br := dataflow.IfOf(b)
		if br == nil {
			continue
		}
		cmp, ok := br.Cond.(*ssa.BinOp)
		if !ok || !implementsError(cmp.X) || !dataflow.IsNil(cmp.Y) || !attempts(s.Origins(cmp.X, nil)) {
			continue
		}
		success := 1
		if cmp.Op == token.EQL {
			success = 0
		}
		after = append(after, b.Succs[success])
	}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		v := errorResult(ret)
		if v == nil || dataflow.IsNil(v) || !ownError(v) {
			continue
		}
		for _, b := range after {
			if b.Dominates(ret.Block()) && len(b.Preds) == 1 {
				return true
			}
		}
	}
	return false
}

// ownError reports whether v is an error that a function has made itself, or a
// sentinel, and not the failure of a call.
func ownError(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	if !ok || len(dataflow.Wrapped(c)) > 0 {
		return dataflow.VariableKind(v) != ""
	}
	pkg := dataflow.CalleePkg(c.Common())
	return pkg == "errors" || pkg == "fmt"
}

// attempts reports whether one of the calls is something that a retry may be
// about.
func attempts(calls []*ssa.Call) bool {
	for _, c := range calls {
		if !send.Ignored(c.Common()) {
			return true
		}
	}
	return false
}

// PolledAt reports whether the schedule at pos is one of a poll: the retry
// helpers that are called in the same function wait for states, each of them.
func (r *Result) PolledAt(pos token.Pos) bool {
	polled := false
	for c, fn := range r.RetriedCallbacks() {
		outer := c.Parent()
		for outer.Parent() != nil {
			outer = outer.Parent()
		}
		if n := outer.Syntax(); n == nil || pos < n.Pos() || pos >= n.End() {
			continue
		}
		if !r.Polls(fn) {
			return false
		}
		polled = true
	}
	return polled
}
