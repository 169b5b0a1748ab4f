package status

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// storesOf returns what the package stores in a field: a setting is known by its
// default.
func (j *Judge) storesOf(f *types.Var) (vs []ssa.Value) {
	for _, s := range j.known.FieldStores(f) {
		vs = append(vs, s.Val)
	}
	return vs
}

// heldStatus reports whether a field holds the status of a response, whatever its
// name: all that the package stores in it does, but for what it begins with.
func (j *Judge) heldStatus(f *types.Var) bool {
	found := false
	for _, v := range j.storesOf(f) {
		if n, ok := dataflow.ConstInt(v); ok && !overHTTP.all.Has(n) {
			continue
		}
		if !IsStatus(v) {
			return false
		}
		found = true
	}
	return found
}

// argsOf returns what the package's calls hand to a parameter.
func (j *Judge) argsOf(p *ssa.Parameter) (args []ssa.Value) {
	fn := p.Parent()
	calls, _ := j.known.Callers(fn)
	for _, c := range calls {
		if len(c.Args) != len(fn.Params) { // a method value
			return nil
		}
		for i, q := range fn.Params {
			if q == p {
				args = append(args, c.Args[i])
			}
		}
	}
	return args
}

// callee returns the function of the package that c calls, also through an
// interface that has just one kind, with all arguments. It is nil for others.
func (j *Judge) callee(c *ssa.CallCommon) (*ssa.Function, []ssa.Value) {
	if fn := j.known.Implementation(c); fn != nil {
		return fn, append([]ssa.Value{c.Value}, c.Args...)
	}
	return j.known.Body(c), c.Args
}

// functions returns the functions of the package among some values. A parameter
// among them is what a caller may set instead.
func (j *Judge) functions(vs []ssa.Value) (fns []*ssa.Function) {
	for _, v := range vs {
		if ct, ok := v.(*ssa.ChangeType); ok {
			v = ct.X
		}
		if mc, ok := v.(*ssa.MakeClosure); ok {
			v = mc.Fn
		}
		if fn, ok := v.(*ssa.Function); ok && len(fn.Blocks) > 0 && j.known.Own(fn) && len(fns) < 4 {
			fns = append(fns, fn)
		}
	}
	return fns
}
