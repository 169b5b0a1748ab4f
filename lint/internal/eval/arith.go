package eval

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// binary is what an operator makes of two values. What cannot be computed is an
// Expr where both sides stay the same or grow by rules, and Unknown otherwise.
func binary(op token.Token, x, y Value, t types.Type) Value {
	return each(x, func(x Value) Value {
		return each(y, func(y Value) Value { return binaryOne(op, x, y, t) })
	})
}

func binaryOne(op token.Token, x, y Value, t types.Type) Value {
	x, y = unwrapBasic(x), unwrapBasic(y)
	told := Told(x) || Told(y)
	switch op {
	case token.EQL, token.NEQ:
		same, known := equal(x, y)
		if !known {
			return Unknown{Told: told}
		}
		return Const{V: constant.MakeBool(same == (op == token.EQL)), Told: told}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		a, ok := x.(Const)
		b, both := y.(Const)
		if !ok || !both || a.V.Kind() == constant.Bool || a.V.Kind() == constant.String != (b.V.Kind() == constant.String) {
			return Unknown{Told: told}
		}
		return Const{V: constant.MakeBool(constant.Compare(a.V, op, b.V)), Told: told}
	}
	a, ok := x.(Const)
	b, both := y.(Const)
	if ok && both {
		if v := compute(op, a.V, b.V, t); v != nil {
			return Const{V: v, Told: told}
		}
		return Unknown{Told: told}
	}
	if _, ok := x.(Server); ok {
		return Server{}
	}
	if _, ok := y.(Server); ok {
		return Server{}
	}
	if isUnknown(x) || isUnknown(y) {
		if Random(x) || Random(y) {
			return Rand{}
		}
		return Unknown{Told: told}
	}
	return computed(op.String(), x, y)
}

// computed is an Expr. What has grown too long to be told apart is known to be that.
func computed(op string, args ...Value) Value {
	e := Expr{Op: op, Args: args}
	switch e.name = e.key(); {
	case len(e.name) <= 400:
		return e
	case Random(e):
		return Rand{}
	case Told(e):
		return Unknown{Told: true}
	}
	return Expr{Op: "long"}
}

// isUnknown reports whether nothing can be said of a value that is computed from v.
func isUnknown(v Value) bool {
	switch v.(type) {
	case Unknown, Made, Failure, Answer, Part, nil:
		return true
	}
	return false
}

// unwrapBasic takes numbers and texts out of their interfaces.
func unwrapBasic(v Value) Value {
	if i, ok := v.(Iface); ok {
		if c, ok := i.V.(Const); ok {
			return c
		}
	}
	return v
}

// Random reports whether a value is drawn at random, or is computed from one that is.
func Random(v Value) bool {
	switch v := v.(type) {
	case Rand:
		return true
	case Expr:
		if slices.ContainsFunc(v.Args, Random) {
			return true
		}
	}
	return false
}

// equal compares two values; known is false when they may be equal or not.
func equal(x, y Value) (same, known bool) {
	a, ok := x.(Const)
	b, both := y.(Const)
	if ok && both {
		if a.V.Kind() == constant.Bool || a.V.Kind() == constant.String {
			return a.V.Kind() == b.V.Kind() && constant.Compare(a.V, token.EQL, b.V), true
		}
		return constant.Compare(a.V, token.EQL, b.V), true
	}
	if _, ok := y.(Nil); ok {
		return isNil(x)
	}
	if _, ok := x.(Nil); ok {
		return isNil(y)
	}
	// Of headers no more is assumed than that one may be there.
	if _, ok := x.(Server); ok && both && b.V.Kind() == constant.String && constant.StringVal(b.V) != "" {
		return false, true
	}
	// An error that was made here, or by the operation, is no sentinel.
	_, xs := x.(Sym)
	_, ys := y.(Sym)
	switch x.(type) {
	case Failure, Made, Wrap, Iface, Ptr:
		if ys {
			return false, true
		}
	}
	switch y.(type) {
	case Failure, Made, Wrap, Iface, Ptr:
		if xs {
			return false, true
		}
	}
	m, made := x.(Made)
	n, other := y.(Made)
	if made && !m.Told && isConstIface(y) || other && !n.Told && isConstIface(x) {
		return false, true
	}
	if !isUnknown(x) && !isUnknown(y) && x.key() == y.key() {
		return true, true
	}
	if xs && ys && isSentinel(x) && isSentinel(y) {
		return false, true
	}
	return false, false
}

// isConstIface reports whether v is a number in an interface, such as an Errno.
func isConstIface(v Value) bool {
	i, ok := v.(Iface)
	if !ok {
		return false
	}
	_, ok = i.V.(Const)
	return ok
}

// isSentinel reports whether v is a variable of a package that holds an error.
func isSentinel(v Value) bool {
	s, ok := v.(Sym)
	return ok && strings.HasPrefix(s.Name, "var ")
}

// compute applies an operator to constants, as the type has it; nil where that
// fails.
func compute(op token.Token, a, b constant.Value, t types.Type) (v constant.Value) {
	defer func() {
		if recover() != nil {
			v = nil
		}
	}()
	integer := Is(t, types.IsInteger)
	switch op {
	case token.SHL, token.SHR:
		n, ok := constant.Uint64Val(constant.ToInt(b))
		if !ok || n > 128 {
			return nil
		}
		v = constant.Shift(constant.ToInt(a), op, uint(n))
	case token.QUO:
		if constant.Sign(b) == 0 {
			return nil
		}
		if integer {
			op = token.QUO_ASSIGN
		}
		v = constant.BinaryOp(a, op, b)
	case token.REM:
		if constant.Sign(b) == 0 {
			return nil
		}
		v = constant.BinaryOp(a, op, b)
	default:
		v = constant.BinaryOp(a, op, b)
	}
	switch {
	case integer && v.Kind() == constant.Int && constant.BitLen(v) > 63:
		return nil // it has gone over
	case v.Kind() == constant.Float: // no more exact than it is at run time
		f, _ := constant.Float64Val(v)
		v = constant.MakeFloat64(f)
	}
	return v
}

// convert is a value as another type.
func convert(v Value, t types.Type) Value {
	return each(v, func(v Value) Value {
		c, ok := v.(Const)
		b, basic := t.Underlying().(*types.Basic)
		if !ok || !basic {
			return v
		}
		switch {
		case b.Info()&types.IsInteger != 0 && c.V.Kind() == constant.Float:
			f, _ := constant.Float64Val(c.V)
			if f > 9e18 || f < -9e18 {
				return Unknown{Told: c.Told}
			}
			return Const{constant.MakeInt64(int64(f)), c.Told}
		case b.Info()&types.IsFloat != 0 && c.V.Kind() == constant.Int:
			return Const{constant.ToFloat(c.V), c.Told}
		case b.Info()&types.IsString != 0 && c.V.Kind() == constant.Int:
			return Unknown{Told: c.Told}
		}
		return v
	})
}
