package eval

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// enter carries out a function of the package; ok is false when it is too deep.
func (c *carrier) enter(in ssa.CallInstruction, fn *ssa.Function, free, args []Value) (v Value, ok bool) {
	if m := boundMethod(fn); m != nil && len(m.Blocks) > 0 {
		if len(free) == 1 {
			args, free = append([]Value{free[0]}, args...), nil
		} else {
			args = c.bound(in.Common(), args)
		}
		fn = m
	}
	limit := maxDepth
	if c.m.inOp == 0 {
		limit = 4
	}
	if c.f.depth >= limit || len(fn.Blocks) > 200 || c.m.visited[fn] > 1 {
		return nil, false
	}
	c.m.visited[fn]++
	defer func() { c.m.visited[fn]-- }()
	sub := &frame{
		fn: fn, args: args, free: free, up: c.f, site: in, depth: c.f.depth + 1,
		id: c.f.id + "/" + c.id0(in), env: map[slot]Value{},
	}
	st := c.s.clone()
	st.doubt = false
	ret, left := c.m.blocks(sub, st)
	if left == nil {
		if c.m.over {
			return nil, false
		}
		return c.guess(in, args, true), true // it never returns, as far as is known
	}
	doubt := c.s.doubt
	*c.s = *left
	c.s.doubt = doubt
	return ret, true
}

func (c *carrier) id0(in ssa.CallInstruction) string {
	if v, ok := in.(ssa.Value); ok {
		return c.id(v)
	}
	return "go"
}

// dynamic carries out a call of a function value that is known, or of each that it
// may be.
func (c *carrier) dynamic(in ssa.CallInstruction, com *ssa.CallCommon, args []Value) (v Value, ok bool) {
	for _, w := range ways(c.val(com.Value)) {
		f, known := w.(Func)
		if !known || len(f.Fn.Blocks) == 0 {
			if m := boundMethod(f.Fn); known && m != nil && len(f.Free) == 1 && len(m.Blocks) > 0 {
				r, entered := c.enter(in, m, nil, append([]Value{f.Free[0]}, args...))
				if !entered {
					return nil, false
				}
				v, ok = join(v, r), true
				continue
			}
			return nil, false
		}
		r, entered := c.enter(in, f.Fn, f.Free, args)
		if !entered {
			return nil, false
		}
		v, ok = join(v, r), true
	}
	return v, ok
}

// bound are the arguments of a method value, with the receiver that it holds.
func (c *carrier) bound(com *ssa.CallCommon, args []Value) []Value {
	if mc, ok := com.Value.(*ssa.MakeClosure); ok && len(mc.Bindings) == 1 {
		return append([]Value{c.val(mc.Bindings[0])}, args...)
	}
	return args
}

// target is the function of the package that a call certainly enters, or nil.
func (c *carrier) target(com *ssa.CallCommon) *ssa.Function {
	if com.IsInvoke() {
		if i, ok := c.val(com.Value).(Iface); ok {
			if fn := method(c.f.fn.Prog, i.T, com.Method); fn != nil && len(fn.Blocks) > 0 {
				return fn
			}
		}
		return c.m.Lib.Implementer(com.Method)
	}
	if fn := Static(com); fn != nil {
		if len(fn.Blocks) > 0 {
			return fn
		}
		return nil
	}
	if f, ok := c.val(com.Value).(Func); ok && len(f.Fn.Blocks) > 0 {
		return f.Fn
	}
	return nil
}

// dull reports whether a function is not worth entering outside of the operation: it
// neither waits nor is told anything of the answer, and yields nothing or an error; what
// makes a request is.
func (c *carrier) dull(fn *ssa.Function, com *ssa.CallCommon, args []Value) bool {
	res := com.Signature().Results()
	if c.m.Keep != nil || res.Len() > 0 && !IsError(res.At(res.Len()-1).Type()) || fn.Parent() != nil || c.m.Lib.Lively(fn) || Pauses(fn.Name()) {
		return false // a literal may have captured anything
	}
	if res.Len() > 0 && isRequest(res.At(0).Type()) {
		return false
	}
	for i, a := range args {
		if Told(a) {
			return false
		}
		if _, isFunc := com.Args[i].Type().Underlying().(*types.Signature); isFunc {
			return false
		}
	}
	return true
}

func sameWaits(a, b []Waits) bool {
	return slices.EqualFunc(a, b, func(x, y Waits) bool { return x.key() == y.key() })
}
