package dataflow

import (
	"go/types"
	"strings"
)

// IsError reports whether t is error, or an error type of a package: an
// interface, or a pointer that says so by its name.
//
// The name is asked because many types have a method Error without being a
// failure: a response that may be used as an error is a response first.
func IsError(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	if ok && n.Obj().Pkg() == nil && n.Obj().Name() == "error" {
		return true
	}
	if ok && types.IsInterface(n) {
		return types.Implements(n, errorType)
	}
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && strings.Contains(TypeName(p), "Err") && types.Implements(p, errorType)
}

// ImplementsError reports whether a value of type t may be used as an error,
// whatever it is for.
func ImplementsError(t types.Type) bool { return types.Implements(t, errorType) }

// errorType is the interface behind the predeclared type error.
var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// IsNamed reports whether t, or what it points to, is the named type.
func IsNamed(t types.Type, pkg, name string) bool {
	return TypeName(t) == name && TypePkg(t) == pkg
}

// TypeName is the name of t, or of what it points to, without its package; ""
// for a type without a name.
func TypeName(t types.Type) string {
	if n := named(t); n != nil {
		return n.Obj().Name()
	}
	return ""
}

// TypePkg is the import path of the package of t, or of what it points to; "" for
// a type without a name, and for one of the universe, such as error.
func TypePkg(t types.Type) string {
	if n := named(t); n != nil && n.Obj().Pkg() != nil {
		return n.Obj().Pkg().Path()
	}
	return ""
}

// named returns the named type that t is, or points to; nil for any other.
// Aliases are resolved first, so that a renamed type keeps its identity.
func named(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

// IsDuration reports whether t is time.Duration.
func IsDuration(t types.Type) bool { return IsNamed(t, "time", "Duration") }

// IsContext reports whether t is context.Context.
func IsContext(t types.Type) bool { return IsNamed(t, "context", "Context") }

// IsInteger reports whether t is an integer of any size, or a type made of one:
// time.Duration is.
func IsInteger(t types.Type) bool { return isBasic(t, types.IsInteger) }

// IsNumber reports whether t is a number of any kind.
func IsNumber(t types.Type) bool { return isBasic(t, types.IsNumeric) }

// IsText reports whether t is string, or a type made of it.
func IsText(t types.Type) bool { return isBasic(t, types.IsString) }

// IsBool reports whether t is bool, or a type made of it.
func IsBool(t types.Type) bool { return isBasic(t, types.IsBoolean) }

// isBasic reports whether t is a basic type of one kind, or made of one.
func isBasic(t types.Type, info types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0
}

// IsTimeChan reports whether t is a channel that only clocks send on.
func IsTimeChan(t types.Type) bool {
	c, ok := t.Underlying().(*types.Chan)
	return ok && IsNamed(c.Elem(), "time", "Time")
}

// TellsNothing reports whether a function has no result but success or failure.
// A function that yields something was called for that, not for its wait.
func TellsNothing(sig *types.Signature) bool {
	for v := range sig.Results().Variables() {
		b, ok := v.Type().Underlying().(*types.Basic)
		if !IsError(v.Type()) && (!ok || b.Kind() != types.Bool) {
			return false
		}
	}
	return true
}
