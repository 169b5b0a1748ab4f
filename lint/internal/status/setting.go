package status

import (
	"go/types"
	"slices"

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

// stores is storesOf for an evaluation, which is less sure of a field that users of
// the package may set too.
func (e *eval) stores(f *types.Var) []ssa.Value {
	vs := e.j.storesOf(f)
	e.guessed = e.guessed || len(vs) > 0 && f.Exported()
	return vs
}

// argsOf returns what the package's calls hand to a parameter. Where there may be
// others, the evaluation is less sure.
func (e *eval) argsOf(p *ssa.Parameter) (args []ssa.Value) {
	fn := p.Parent()
	calls, all := e.j.known.Callers(fn)
	e.guessed = e.guessed || len(calls) > 0 && !all
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
// interface that has just one kind, or as what the caller hands over, with all
// arguments. It is nil for others.
// Users of the package may have other kinds of an interface that they can name.
func (e *eval) callee(c *ssa.CallCommon) (*ssa.Function, []ssa.Value) {
	if p, ok := c.Value.(*ssa.Parameter); ok && !c.IsInvoke() {
		if fn, bound := e.handedFunc(p); fn != nil {
			return fn, append(bound, c.Args...)
		}
	}
	if fn := e.j.known.Implementation(c); fn != nil {
		n, ok := types.Unalias(c.Value.Type()).(*types.Named)
		e.guessed = e.guessed || ok && n.Obj().Exported()
		return fn, append([]ssa.Value{c.Value}, c.Args...)
	}
	return e.j.known.Body(c), c.Args
}

// handedFunc returns the function of the package that v is, which a caller may have
// handed over, with the receiver of a method value; nil for any other value.
func (e *eval) handedFunc(v ssa.Value) (fn *ssa.Function, receiver []ssa.Value) {
	if p, ok := v.(*ssa.Parameter); ok {
		if i := slices.Index(e.sc.Fn.Params, p); e.caller != nil && i >= 0 && i < len(e.args) {
			return e.caller.handedFunc(e.args[i])
		}
		return nil, nil
	}
	fn, bound := dataflow.FuncValue(v)
	switch {
	case fn == nil || len(fn.Blocks) == 0 || !e.j.known.Own(fn):
		return nil, nil
	case fn.Parent() != nil: // a literal, whose variables are no parameters
		return fn, nil
	}
	return fn, slices.Clip(bound)
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
