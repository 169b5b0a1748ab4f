package eval

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Static is the body behind a call when there is just one: of a function, a closure,
// a method value, an instance of a generic function. Instances share the body of
// their origin, unless they were built.
func Static(com *ssa.CallCommon) *ssa.Function {
	fn := com.StaticCallee()
	if fn == nil {
		return nil
	}
	if m := boundMethod(fn); m != nil {
		return m
	}
	if o := fn.Origin(); o != nil && len(o.Blocks) > 0 {
		return o
	}
	return fn
}

// boundMethod is the method behind a method value, or nil.
func boundMethod(fn *ssa.Function) *ssa.Function {
	if fn == nil || fn.Parent() != nil || len(fn.FreeVars) != 1 || !strings.HasSuffix(fn.Name(), "$bound") {
		return nil
	}
	obj, _ := fn.Object().(*types.Func)
	if obj == nil {
		return nil
	}
	return fn.Prog.FuncValue(obj)
}

// method is the method of a type that an interface's method stands for.
func method(prog *ssa.Program, t types.Type, m *types.Func) *ssa.Function {
	sel := prog.MethodSets.MethodSet(t).Lookup(m.Pkg(), m.Name())
	if sel == nil {
		return nil
	}
	obj, _ := sel.Obj().(*types.Func)
	if obj == nil {
		return nil
	}
	return prog.FuncValue(obj)
}

// Callee is the function or the interface's method that a call names, or nil.
func Callee(com *ssa.CallCommon) *types.Func {
	if com.IsInvoke() {
		return com.Method
	}
	if f := com.StaticCallee(); f != nil {
		if f.Origin() != nil {
			f = f.Origin()
		}
		obj, _ := f.Object().(*types.Func)
		return obj
	}
	return nil
}

// CalleePkg is the path of the package of what is called, or "".
func CalleePkg(com *ssa.CallCommon) string {
	if f := Callee(com); f != nil && f.Pkg() != nil {
		return f.Pkg().Path()
	}
	return ""
}

// CalleeName is the name of what is called, or of the variable that holds it.
func CalleeName(com *ssa.CallCommon) string {
	if f := Callee(com); f != nil {
		return f.Name()
	}
	if b, ok := com.Value.(*ssa.Builtin); ok {
		return b.Name()
	}
	return ValueName(com.Value)
}

// ValueName is the name by which code knows a value: of a variable, a field, a
// parameter, a function; "" for what has none.
func ValueName(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.UnOp:
		return ValueName(v.X)
	case *ssa.Global, *ssa.Parameter, *ssa.FreeVar:
		return v.Name()
	case *ssa.FieldAddr:
		return v.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct).Field(v.Field).Name()
	case *ssa.Field:
		return v.X.Type().Underlying().(*types.Struct).Field(v.Field).Name()
	case *ssa.Alloc:
		return v.Comment
	case *ssa.Phi:
		return v.Comment
	case *ssa.MakeInterface:
		return ValueName(v.X)
	case *ssa.ChangeType:
		return ValueName(v.X)
	case *ssa.Convert:
		return ValueName(v.X)
	case *ssa.Function:
		return v.Name()
	case *ssa.MakeClosure:
		return v.Fn.Name()
	}
	return ""
}

// noReturn reports whether a call ends the program: log.Fatal and its like.
func noReturn(com *ssa.CallCommon) bool {
	switch CalleeName(com) {
	case "Fatal", "Fatalf", "Fatalln", "FailNow", "Panicf", "Fatalw":
		return true
	case "Exit":
		return CalleePkg(com) == "os"
	}
	return false
}
