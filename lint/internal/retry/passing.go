package retry

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Outermost is the declared function around a literal, or the function itself.
func Outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

// handedParam is the parameter of fn that a retry of it calls again, or -1.
func handedParam(r *Retry, fn *ssa.Function) int {
	if Outermost(r.Fn) != fn || !r.Callback {
		return -1
	}
	return slices.Index(fn.Params, paramOf(r.Ops[0].Common().Value, 6))
}

// paramOf is the parameter that a value holds, by itself, in a variable or captured by a
// literal; or nil.
func paramOf(v ssa.Value, depth int) *ssa.Parameter {
	if depth == 0 {
		return nil
	}
	switch v := v.(type) {
	case *ssa.Parameter:
		return v
	case *ssa.UnOp:
		return paramOf(v.X, depth-1)
	case *ssa.MakeInterface:
		return paramOf(v.X, depth-1)
	case *ssa.ChangeType:
		return paramOf(v.X, depth-1)
	case *ssa.Alloc:
		for _, ref := range *v.Referrers() {
			if st, ok := ref.(*ssa.Store); ok && st.Addr == ssa.Value(v) {
				return paramOf(st.Val, depth-1)
			}
		}
	case *ssa.FreeVar:
		lit := v.Parent()
		for mc := range InstrsOf[*ssa.MakeClosure](lit.Parent()) {
			if mc.Fn == ssa.Value(lit) {
				return paramOf(mc.Bindings[slices.Index(lit.FreeVars, v)], depth-1)
			}
		}
	}
	return nil
}

// passesOn says of a function that hands a parameter on to a retry helper of another
// package; nil for any other.
func (p *Package) passesOn(fn *ssa.Function) *Retrier {
	for c := range Calls(fn) {
		by, i := p.foreignRetrier(c.Common())
		if by == nil || i >= len(c.Common().Args) {
			continue
		}
		param := paramOf(c.Common().Args[i], 6)
		if mc, isLit := c.Common().Args[i].(*ssa.MakeClosure); isLit { // func() error { return operation() }
			for _, b := range mc.Bindings {
				if q := paramOf(b, 6); q != nil && isFunc(q.Type()) {
					param = q
				}
			}
		}
		if param != nil {
			on := *by
			on.Param = slices.Index(fn.Params, param)
			return &on
		}
	}
	return nil
}

func isFunc(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}
