package status

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// cellValue follows the read of a variable that could not be lifted (a result
// of a function that defers) to the last store before it, through blocks with a
// single predecessor. Where paths meet, the read is returned as it is, and so it
// is behind a call that may set the variable.
// Six blocks are enough for the code that a defer leaves between them.
func cellValue(v ssa.Value) ssa.Value {
	u, ok := v.(*ssa.UnOp)
	if !ok || u.Op != token.MUL {
		return v
	}
	cell := u.X
	switch cell.(type) {
	case *ssa.Alloc, *ssa.FreeVar: // of the function, or of one around it
	default:
		return v
	}
	b := u.Block()
	at := slices.Index(b.Instrs, ssa.Instruction(u))
	for range 6 {
		for i := at - 1; i >= 0; i-- {
			switch in := b.Instrs[i].(type) {
			case *ssa.Store:
				if in.Addr == u.X {
					return in.Val
				}
			case *ssa.Call:
				if _, isBuiltin := in.Common().Value.(*ssa.Builtin); !isBuiltin && outOfSight(cell) {
					return v
				}
			case *ssa.RunDefers:
				if deferredlySet(cell) {
					return v
				}
			}
		}
		if len(b.Preds) != 1 {
			return v
		}
		b = b.Preds[0]
		at = len(b.Instrs)
	}
	return v
}

// outOfSight reports whether a call may set the variable of a cell: a closure
// that is not just deferred assigns it, or something else has its address.
func outOfSight(cell ssa.Value) bool {
	for in := range dataflow.Refs[ssa.Instruction](cell) {
		switch in := in.(type) {
		case *ssa.MakeClosure:
			if !onlyDeferred(in) && dataflow.Assigns(in, cell) {
				return true
			}
		case *ssa.Store:
			if in.Val == cell {
				return true
			}
		case *ssa.Call, *ssa.MakeInterface, *ssa.Phi, *ssa.ChangeType, *ssa.Send, *ssa.Go:
			return true
		}
	}
	return false
}

// onlyDeferred reports whether a closure runs when the function returns, and at
// no other time.
func onlyDeferred(mc *ssa.MakeClosure) bool {
	for in := range dataflow.Refs[ssa.Instruction](mc) {
		if d, ok := in.(*ssa.Defer); !ok || d.Common().Value != ssa.Value(mc) {
			return false
		}
	}
	return true
}

// deferredlySet reports whether a deferred closure may turn what a function is
// about to return around. One that adds to an error, or puts one in the place of
// none, does not: nothing but the response is taken to fail.
func deferredlySet(cell ssa.Value) bool {
	for mc := range dataflow.Refs[*ssa.MakeClosure](cell) {
		fn := mc.Fn.(*ssa.Function)
		i := slices.Index(mc.Bindings, cell)
		if i < 0 {
			continue
		}
		for s := range dataflow.Refs[*ssa.Store](fn.FreeVars[i]) {
			if s.Addr == ssa.Value(fn.FreeVars[i]) && (!dataflow.IsError(s.Val.Type()) || dataflow.IsNil(s.Val)) {
				return true
			}
		}
	}
	return false
}
