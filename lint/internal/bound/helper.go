package bound

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// asked reads a condition that a function of the package decides: one that
// counts in a field or in a captured variable, or that looks at the clock. Its
// limit is not read: a counter that outlives the call begins with what is left.
func (r *reader) asked(c *ssa.Call, depth int) {
	fn := r.Known.Body(c.Common())
	if fn == nil {
		fn = r.Known.Implementation(c.Common())
	}
	if fn == nil || depth > 2 {
		return
	}
	s := r.Known.Scope(fn)
	for in := range dataflow.Instrs[ssa.Instruction](fn) {
		switch in := in.(type) {
		case *ssa.BinOp:
			if !dataflow.IsBool(in.Type()) {
				continue
			}
			if dataflow.Timely(in.X, 0) || dataflow.Timely(in.Y, 0) {
				r.b.Deadline = true
			}
			if countsKept(s.Func, in.X) || countsKept(s.Func, in.Y) {
				r.b.Counter = true
			}
		case *ssa.Call:
			if dataflow.IsBool(in.Type()) || dataflow.IsError(in.Type()) {
				if dataflow.Calls(in, "time", "After", "Before") {
					r.b.Deadline = true
				}
				r.asked(in, depth+1)
			}
		}
	}
}

// countsKept reports whether v is a number that the function counts up or down
// in something that outlives it.
func countsKept(f *dataflow.Func, v ssa.Value) bool {
	if sum, ok := v.(*ssa.BinOp); ok && addsUp(sum) && dataflow.IsConst(sum.Y) {
		v = sum.X
	}
	load, ok := v.(*ssa.UnOp)
	if !ok || load.Op != token.MUL || dataflow.IsDuration(load.Type()) || !dataflow.IsInteger(load.Type()) {
		return false
	}
	if _, local := load.X.(*ssa.Alloc); local {
		return false
	}
	return slices.ContainsFunc(f.StoresTo(load.X), func(st *ssa.Store) bool {
		sum, ok := st.Val.(*ssa.BinOp)
		return ok && addsUp(sum) && dataflow.IsConst(sum.Y)
	})
}

// stopped reports whether a condition looks at what others set to end the loop:
// a flag in a field, the state of a channel.
func stopped(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op == token.NOT {
			return stopped(v.X)
		}
		_, isField := v.X.(*ssa.FieldAddr)
		return v.Op == token.ARROW || v.Op == token.MUL && isField && dataflow.IsBool(v.Type())
	case *ssa.Extract:
		recv, ok := v.Tuple.(*ssa.UnOp)
		return ok && recv.Op == token.ARROW
	case *ssa.Call:
		return dataflow.CalleePkg(v.Common()) == "sync/atomic" && dataflow.CalleeName(v.Common()) == "Load" && dataflow.IsBool(v.Type())
	}
	return false
}
