package retryloop

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// acceptTest recognizes the test of a callback that says whether it is done: op
// returns a bool beside an error, and false asks for another attempt. It is the
// contract of retry helpers as of pollers, so that the function or its package
// must speak of retries. t takes the failure to be what the branch is true for.
func (f *finder) acceptTest(c *ssa.Extract, t *Test, l *dataflow.Loop) *Test {
	op, ok := c.Tuple.(*ssa.Call)
	if !ok || !l.Contains(op) || c.Index != 0 || op.Common().IsInvoke() || op.Common().StaticCallee() != nil || !f.handed(op.Common().Value) {
		return nil
	}
	if !saysRetry(f.Fn.Name()) && !saysRetry(dataflow.PathOf(f.Fn)) {
		return nil
	}
	res := op.Common().Signature().Results()
	if !types.Identical(c.Type(), types.Typ[types.Bool]) || !dataflow.IsError(res.At(res.Len()-1).Type()) {
		return nil
	}
	t.Ops, t.Bool, t.Fail = []*ssa.Call{op}, true, 1-t.Fail
	return t
}

// handed reports whether a function value is a parameter, or a field of one.
func (f *finder) handed(v ssa.Value) bool {
	for range 3 {
		if f.ParamOf(v) >= 0 {
			return true
		}
		switch x := v.(type) {
		case *ssa.UnOp:
			v = x.X
		case *ssa.FieldAddr:
			v = x.X
		case *ssa.Field:
			v = x.X
		case *ssa.Alloc: // a parameter whose address is taken
			st := f.StoresTo(x)
			return len(st) == 1 && f.ParamOf(st[0].Val) >= 0
		default:
			return false
		}
	}
	return false
}
