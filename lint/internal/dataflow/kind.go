package dataflow

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// TypeKind names a type, or what it points to, by its full name: "net.OpError";
// "" for a type without a name. Errors are told apart by it across packages.
func TypeKind(t types.Type) string {
	if TypePkg(t) == "" {
		return ""
	}
	return TypePkg(t) + "." + TypeName(t)
}

// VariableKind names the variable of a package that v is read from: "io.EOF"; ""
// for any other value.
func VariableKind(v ssa.Value) string {
	u, ok := v.(*ssa.UnOp)
	if !ok || u.Op != token.MUL {
		return ""
	}
	g, ok := u.X.(*ssa.Global)
	if !ok || g.Pkg == nil {
		return ""
	}
	return g.Pkg.Pkg.Path() + "." + g.Name()
}

// ParamOf returns the index of the parameter of r's function that v is, and -1
// when it is none. A parameter that a closure captures is kept in a cell, which
// must hold nothing else.
func (r *Func) ParamOf(v ssa.Value) int {
	v = Strip(v)
	if u, ok := v.(*ssa.UnOp); ok && u.Op == token.MUL {
		if st := r.StoresTo(u.X); len(st) == 1 {
			v = Strip(st[0].Val)
		}
	}
	for i, p := range r.Fn.Params {
		if v == ssa.Value(p) {
			return i
		}
	}
	return -1
}

// PathOf returns the import path of a function's package, or "".
func PathOf(fn *ssa.Function) string {
	if p := fn.Package(); p != nil {
		return p.Pkg.Path()
	}
	return ""
}

// Sought returns the error that a call looks into for one of a type, as errors.As
// and errors.AsType do, and that type; nil for any other call.
func Sought(c *ssa.CallCommon) (err ssa.Value, t types.Type) {
	switch name := CalleeName(c); {
	case len(c.Args) == 0 || !ImplementsError(c.Args[0].Type()):
	case name == "As" && len(c.Args) == 2: // a pointer to a variable of the type
		m, ok := c.Args[1].(*ssa.MakeInterface)
		if !ok {
			break
		}
		if p, ok := m.X.Type().Underlying().(*types.Pointer); ok {
			return c.Args[0], p.Elem()
		}
	case CalleePkg(c) == "errors" && name == "AsType":
		if fn := c.StaticCallee(); fn != nil && len(fn.TypeArgs()) == 1 {
			return c.Args[0], fn.TypeArgs()[0]
		}
	}
	return nil, nil
}
