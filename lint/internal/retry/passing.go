package retry

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// handedParam is the parameter of fn that a retry of it calls again, or -1.
func handedParam(r *Retry, fn *ssa.Function) int {
	outer := r.Fn
	for outer.Parent() != nil {
		outer = outer.Parent()
	}
	if outer != fn || !r.Callback {
		return -1
	}
	v := r.Ops[0].Common().Value
	for range 4 {
		switch x := v.(type) {
		case *ssa.UnOp:
			v = x.X
		case *ssa.FreeVar:
			for i, fv := range r.Fn.FreeVars {
				if fv == x {
					return freeParam(fn, r.Fn, i)
				}
			}
			return -1
		case *ssa.Alloc:
			for _, ref := range *x.Referrers() {
				if st, ok := ref.(*ssa.Store); ok && st.Addr == ssa.Value(x) {
					v = st.Val
				}
			}
		}
	}
	param, ok := v.(*ssa.Parameter)
	if !ok {
		return -1
	}
	return slices.Index(fn.Params, param)
}

// freeParam is the parameter of outer that a literal in it captures as its i-th.
func freeParam(outer, lit *ssa.Function, i int) int {
	for _, b := range outer.Blocks {
		for _, in := range b.Instrs {
			mc, ok := in.(*ssa.MakeClosure)
			if !ok || mc.Fn != ssa.Value(lit) || i >= len(mc.Bindings) {
				continue
			}
			v := mc.Bindings[i]
			if a, ok := v.(*ssa.Alloc); ok {
				for _, ref := range *a.Referrers() {
					if st, ok := ref.(*ssa.Store); ok && st.Addr == v {
						if param, ok := st.Val.(*ssa.Parameter); ok {
							return slices.Index(outer.Params, param)
						}
					}
				}
			}
			if param, ok := v.(*ssa.Parameter); ok {
				return slices.Index(outer.Params, param)
			}
		}
	}
	return -1
}

// passesOn says of a function that hands a parameter on to a retry helper of another
// package; nil for any other.
func (p *Package) passesOn(fn *ssa.Function) *Retrier {
	for c := range Calls(fn) {
		by, i := p.foreignRetrier(c.Common())
		if by == nil || i >= len(c.Common().Args) {
			continue
		}
		v := c.Common().Args[i]
		for {
			if m, ok := v.(*ssa.MakeInterface); ok {
				v = m.X
			} else if t, ok := v.(*ssa.ChangeType); ok {
				v = t.X
			} else {
				break
			}
		}
		param, ok := v.(*ssa.Parameter)
		if mc, isLit := v.(*ssa.MakeClosure); isLit { // func() error { return operation() }
			for j := range mc.Bindings {
				if n := freeParam(fn, mc.Fn.(*ssa.Function), j); n >= 0 && fn.Params[n].Type().Underlying() != nil && isFunc(fn.Params[n].Type()) {
					param, ok = fn.Params[n], true
				}
			}
		}
		if ok {
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
