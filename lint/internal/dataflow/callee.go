package dataflow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Callee returns the function that c calls, or the interface method; nil for a
// call of a function value. An instance is its generic function here too, so
// that facts about the one hold for the other.
func Callee(c *ssa.CallCommon) *types.Func {
	if c.IsInvoke() {
		return c.Method
	}
	if f := c.StaticCallee(); f != nil {
		if f.Origin() != nil {
			f = f.Origin()
		}
		obj, _ := f.Object().(*types.Func)
		return obj
	}
	return nil
}

// Static returns the body behind a call when there is just one: of a function,
// a closure, a method value, an instance of a generic function. It is nil for a
// call through an interface or a function value.
//
// Instances share the body of the generic function: their own is built on
// demand, and what matters here is in both.
func Static(c *ssa.CallCommon) *ssa.Function {
	f := c.StaticCallee()
	if f == nil {
		return nil
	}
	if m := BoundMethod(f); m != nil {
		return m
	}
	if o := f.Origin(); o != nil && len(o.Blocks) > 0 {
		return o
	}
	return f
}

// BoundMethod returns the method behind f when f is a method value, as in send
// := c.send, and nil otherwise. SSA makes a function with the receiver as a free
// variable, so the calls of it leave the receiver out of their arguments.
func BoundMethod(f *ssa.Function) *ssa.Function {
	if f.Parent() != nil || len(f.FreeVars) != 1 || !strings.HasSuffix(f.Name(), "$bound") {
		return nil
	}
	obj, _ := f.Object().(*types.Func)
	if obj == nil {
		return nil
	}
	return f.Prog.FuncValue(obj)
}

// FuncValue returns the function that a value is, with what it was bound to: what
// a literal captures, or the receiver of a method value. It is nil for a value
// that is no function by itself, such as a variable.
func FuncValue(v ssa.Value) (fn *ssa.Function, bound []ssa.Value) {
	switch v := Strip(v).(type) {
	case *ssa.Function:
		return v, nil
	case *ssa.MakeClosure:
		fn := v.Fn.(*ssa.Function)
		if m := BoundMethod(fn); m != nil {
			return m, v.Bindings
		}
		return fn, v.Bindings
	}
	return nil, nil
}

// OwnLiteral returns the literal that c stands in when c calls it through the
// variable that it was assigned to, and nil otherwise: var try func() error; try =
// func() error { ... try() ... }. A variable that is assigned twice may hold
// something else.
func OwnLiteral(c *ssa.Call) *ssa.Function {
	load, ok := c.Common().Value.(*ssa.UnOp)
	if !ok {
		return nil
	}
	fv, ok := load.X.(*ssa.FreeVar)
	fn := c.Parent()
	if !ok || fn.Parent() == nil {
		return nil
	}
	i := slices.Index(fn.FreeVars, fv)
	for mc := range Instrs[*ssa.MakeClosure](fn.Parent()) {
		if mc.Fn != ssa.Value(fn) || i < 0 || i >= len(mc.Bindings) {
			continue
		}
		stores := 0
		for st := range Refs[*ssa.Store](mc.Bindings[i]) {
			if st.Addr != mc.Bindings[i] || st.Val != ssa.Value(mc) {
				return nil
			}
			stores++
		}
		if stores == 1 {
			return fn
		}
	}
	return nil
}

// CalleeName is the name of what c calls: of a function, a method, a builtin, or
// of the variable that holds a function value.
func CalleeName(c *ssa.CallCommon) string {
	if f := Callee(c); f != nil {
		return f.Name()
	}
	if b, ok := c.Value.(*ssa.Builtin); ok {
		return b.Name()
	}
	return ValueName(c.Value)
}

// CalleePkg is the import path of what c calls; "" for builtins, function
// values and the methods of error.
func CalleePkg(c *ssa.CallCommon) string {
	if f := Callee(c); f != nil && f.Pkg() != nil {
		return f.Pkg().Path()
	}
	return ""
}

// Calls reports whether c calls one of the named functions or methods of a
// package.
func Calls(c *ssa.Call, pkg string, names ...string) bool {
	return CalleePkg(c.Common()) == pkg && slices.Contains(names, CalleeName(c.Common()))
}

// Describe names a call for people: "http.Client.Do", "connect", "a function
// value". Findings and their fingerprints hold these names.
func Describe(c *ssa.CallCommon) string {
	f := Callee(c)
	if f == nil {
		if n := ValueName(c.Value); n != "" {
			return n
		}
		return "a function value"
	}
	if recv := f.Signature().Recv(); recv != nil {
		n := named(recv.Type())
		switch {
		case n == nil: // a method of an interface without a name
			return f.Name()
		case n.Obj().Pkg() == nil: // of error
			return n.Obj().Name() + "." + f.Name()
		}
		return n.Obj().Pkg().Name() + "." + n.Obj().Name() + "." + f.Name()
	}
	if f.Pkg() != nil {
		return f.Pkg().Name() + "." + f.Name()
	}
	return f.Name()
}

// Receiver returns the name of the type whose method c calls, or "".
func Receiver(c *ssa.CallCommon) string {
	if f := Callee(c); f != nil && f.Signature().Recv() != nil {
		return TypeName(f.Signature().Recv().Type())
	}
	return ""
}
