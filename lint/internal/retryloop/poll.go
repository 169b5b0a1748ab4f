package retryloop

import (
	"go/ast"
	"go/types"
	"slices"

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
		if err, failed := errorCheck(br.Cond); err != nil && attempts(s.Origins(err, nil)) {
			after = append(after, b.Succs[1-failed])
		}
	}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		v := errorResult(ret)
		if v == nil || dataflow.IsNil(v) || !ownError(v, 0) {
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
// sentinel, wrapped or not, and not the failure of a call.
func ownError(v ssa.Value, depth int) bool {
	if m, ok := v.(*ssa.MakeInterface); ok {
		v = m.X
	}
	c, ok := v.(*ssa.Call)
	if !ok {
		return dataflow.VariableKind(v) != ""
	}
	if inner := dataflow.Wrapped(c); len(inner) > 0 {
		return depth < 3 && !slices.ContainsFunc(inner, func(e ssa.Value) bool { return !ownError(e, depth+1) })
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

// Polled reports whether the schedule that is made at n is one of a poll: each of
// the retry helpers that are given it waits for a state. What a field keeps is
// given to those that read the field, anything else to those of the function.
func (r *Result) Polled(n ast.Node) bool {
	field := r.keptIn(n)
	polled := false
	for c, fn := range r.RetriedCallbacks() {
		given := within(outermost(c.Parent()).Syntax(), n)
		if field != nil {
			given = slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool { return dataflow.ReadField(a) == field })
		}
		if !given {
			continue
		}
		if !r.Polls(fn) {
			return false
		}
		polled = true
	}
	return polled
}

// keptIn returns the field in which a function keeps what is made at n, or nil.
func (r *Result) keptIn(n ast.Node) *types.Var {
	for _, fn := range r.Funcs {
		if !within(fn.Syntax(), n) {
			continue
		}
		for st := range dataflow.Instrs[*ssa.Store](fn) {
			if field := dataflow.FieldVar(st.Addr); field != nil && madeAt(st.Val, n, 0) {
				return field
			}
		}
	}
	return nil
}

// madeAt reports whether v is made by the call n, or by others around it.
func madeAt(v ssa.Value, n ast.Node, depth int) bool {
	if m, ok := v.(*ssa.MakeInterface); ok {
		v = m.X
	}
	c, ok := v.(*ssa.Call)
	if !ok || depth > 4 {
		return false
	}
	// The position of a call is that of its parenthesis.
	call, ok := n.(*ast.CallExpr)
	return ok && call.Lparen == c.Pos() || slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool { return madeAt(a, n, depth+1) })
}

// outermost returns the function that fn is written in.
func outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

// within reports whether one node lies in another, which may be nil.
func within(outer, n ast.Node) bool {
	return outer != nil && outer.Pos() <= n.Pos() && n.End() <= outer.End()
}
