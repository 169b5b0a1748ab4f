package dataflow

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// ValueName is the name in the source of what a value is read from: a
// parameter, a field, a variable; "" when the value has none. Names are the
// only evidence of what a function value or a setting is for.
func ValueName(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.Parameter, *ssa.FreeVar, *ssa.Global:
		return v.Name()
	case *ssa.Alloc:
		return v.Comment
	case *ssa.Phi:
		return v.Comment
	case *ssa.UnOp:
		return ValueName(v.X)
	case *ssa.MakeClosure:
		return v.Fn.Name()
	}
	return FieldOf(v)
}

// FieldOf returns the name of the field that v is, or is the address of; "" for
// any other value.
func FieldOf(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.FieldAddr:
		return fieldName(v.X.Type(), v.Field)
	case *ssa.Field:
		return fieldName(v.X.Type(), v.Field)
	}
	return ""
}

// fieldName returns the name of a struct's field i, or "". t may be a pointer
// to the struct, as it is for an address.
func fieldName(t types.Type, i int) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok && i < s.NumFields() {
		return s.Field(i).Name()
	}
	return ""
}

// Strip removes conversions. A wait passes through several on its way, from
// int to float64 to time.Duration, and none of them changes what it is.
// It stops at arithmetic: 2 * d is another value than d.
func Strip(v ssa.Value) ssa.Value {
	for {
		switch v.(type) {
		case *ssa.Convert, *ssa.ChangeType:
			v = Operand(v)
		default:
			return v
		}
	}
}

// Operand returns what v is computed from first, and for most kinds alone: the
// value that is converted, read or asserted, the struct of a field, the tuple of
// a result. v is the result of an instruction that has operands.
func Operand(v ssa.Value) ssa.Value { return *v.(ssa.Instruction).Operands(nil)[0] }

// ConstInt returns the value of an integer constant.
// A float or a typed nil is not one, so ok is false for them.
func ConstInt(v ssa.Value) (n int64, ok bool) {
	c := constOf(v, constant.Int)
	if c == nil {
		return 0, false
	}
	return v.(*ssa.Const).Int64(), true
}

// ConstString returns the value of a string constant.
func ConstString(v ssa.Value) (s string, ok bool) {
	c := constOf(v, constant.String)
	if c == nil {
		return "", false
	}
	return constant.StringVal(c), true
}

// ConstBool returns the value of a bool constant.
func ConstBool(v ssa.Value) (value, ok bool) {
	c := constOf(v, constant.Bool)
	return c != nil && constant.BoolVal(c), c != nil
}

// constOf returns the constant of one kind that v is, or nil.
func constOf(v ssa.Value, kind constant.Kind) constant.Value {
	if c, ok := v.(*ssa.Const); ok && c.Value != nil && c.Value.Kind() == kind {
		return c.Value
	}
	return nil
}

// IsConst reports whether v is a constant of any kind, nil included.
func IsConst(v ssa.Value) bool {
	_, ok := v.(*ssa.Const)
	return ok
}

// IfOf returns the branch that ends b, or nil when b goes one way.
// SSA ends each block with at most one branch, and that branch is its last
// instruction.
func IfOf(b *ssa.BasicBlock) *ssa.If {
	if len(b.Instrs) == 0 {
		return nil
	}
	i, _ := b.Instrs[len(b.Instrs)-1].(*ssa.If)
	return i
}

// IsNil reports whether v is the constant nil.
// A variable that happens to hold nil is not.
func IsNil(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.IsNil()
}

// Flip turns "c op x" into "x op' c", so that the constant of a comparison is
// looked for on one side only.
func Flip(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.GTR:
		return token.LSS
	case token.LEQ:
		return token.GEQ
	case token.GEQ:
		return token.LEQ
	}
	return op
}

// Under reports whether an import path is root or lies below it. Versions of a
// module lie below the path that they share.
func Under(pkg, root string) bool {
	return pkg == root || strings.HasPrefix(pkg, root+"/")
}

// FieldVar returns the field that v is, or is the address of, as it was
// declared; nil for any other value. Instances of a generic struct share it.
func FieldVar(v ssa.Value) *types.Var {
	var t types.Type
	var i int
	switch v := v.(type) {
	case *ssa.FieldAddr:
		t, i = v.X.Type(), v.Field
	case *ssa.Field:
		t, i = v.X.Type(), v.Field
	default:
		return nil
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok && i < s.NumFields() {
		return s.Field(i).Origin()
	}
	return nil
}

// ReadField returns the field that v is read from, or nil.
func ReadField(v ssa.Value) *types.Var {
	if u, ok := v.(*ssa.UnOp); ok {
		v = u.X
	}
	return FieldVar(v)
}

// Timely reports whether v measures elapsed time, or is computed from what does.
// Callers pass a depth of 0; the search ends after five levels. A method of
// time.Time counts by its name, whatever its operands are.
func Timely(v ssa.Value, depth int) bool {
	if depth > 5 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Call:
		if Calls(v, "time", "Since", "Until", "Sub", "Now", "Unix") {
			return true
		}
		return slices.ContainsFunc(v.Common().Args, func(a ssa.Value) bool { return Timely(a, depth+1) })
	case *ssa.BinOp:
		return Timely(v.X, depth+1) || Timely(v.Y, depth+1)
	case *ssa.Convert, *ssa.Extract:
		return Timely(Operand(v), depth+1)
	}
	return false
}

// Variadic returns the arguments that SSA packed into the slice v: it makes an
// array, stores each argument in it and passes a slice of it.
func Variadic(v ssa.Value) (args []ssa.Value) {
	s, ok := v.(*ssa.Slice)
	if !ok {
		return nil
	}
	for ia := range Refs[*ssa.IndexAddr](s.X) {
		for st := range Refs[*ssa.Store](ia) {
			if st.Addr == ssa.Value(ia) {
				args = append(args, st.Val)
			}
		}
	}
	return args
}
