package status

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// statusValue returns the assumed value of v when v is the status: a field or a
// method of a response, a parameter that holds it, or a variable that is set
// from one. A constant beside it is what the variable began with.
// ok is false when v may be something else, and then the branch stays open.
func (w *world) statusValue(v ssa.Value) (int64, bool) {
	switch v := v.(type) {
	case *ssa.Convert, *ssa.ChangeType:
		return w.statusValue(dataflow.Operand(v))
	// A parameter holds the status when the caller's argument does.
	case *ssa.Parameter:
		n, ok := w.params[slices.Index(w.scope.Fn.Params, v)]
		return n, ok
	case *ssa.Phi:
		// Codes are taken from errors; a merged one has more sources than the
		// assumption speaks of.
		if w.grpc {
			return 0, false
		}
		found := false
		for _, e := range v.Edges {
			if dataflow.IsConst(e) || e == v {
				continue
			}
			if !IsStatus(e) {
				return 0, false
			}
			found = true
		}
		return w.status, found
	case *ssa.UnOp:
		if a, ok := v.X.(*ssa.Alloc); ok && v.Op == token.MUL && !w.grpc {
			found := false
			for _, s := range w.scope.StoresTo(a) {
				if IsStatus(s.Val) {
					found = true
				} else if !dataflow.IsConst(s.Val) {
					return 0, false
				}
			}
			return w.status, found
		}
	}
	if w.grpc {
		return w.status, isCode(v)
	}
	return w.status, IsStatus(v)
}

// IsStatus reports whether v is the status code of a response: a field or a
// method named StatusCode, or an integer field of a like name. A nil v is none.
// Clients of all makes call it so, and their packages are too many to list.
func IsStatus(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.UnOp:
		fa, ok := v.X.(*ssa.FieldAddr)
		return ok && v.Op == token.MUL && isStatusField(dataflow.FieldOf(fa), v.Type())
	case *ssa.Field:
		return isStatusField(dataflow.FieldOf(v), v.Type())
	case *ssa.Call:
		return dataflow.CalleeName(v.Common()) == "StatusCode"
	case *ssa.Convert:
		return IsStatus(v.X)
	}
	return false
}

// isStatusField reports whether a field of that name and type holds a status:
// a plain integer, not an enumeration.
// An enumeration named Status is the state of something, not a response.
func isStatusField(name string, t types.Type) bool {
	if name == "StatusCode" {
		return true
	}
	_, basic := types.Unalias(t).(*types.Basic)
	return basic && dataflow.IsInteger(t) && statusField.MatchString(name)
}

// statusField names fields and variables that hold the status of a response
// besides the StatusCode of net/http.
var statusField = regexp.MustCompile(`(?i)^(http|resp|response)?_?status(_?code)?$|^(http|resp|response)_?code$|^code$`)

// isCode reports whether v is a gRPC code taken from an error or a status: the
// result of a function or method Code of that type.
// A field of that type is left out: where it was set is not known.
func isCode(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && dataflow.IsNamed(v.Type(), "google.golang.org/grpc/codes", "Code") && dataflow.CalleeName(c.Common()) == "Code"
}

// hundreds returns s of s/100, the class of a status, and nil for anything
// else.
// Code that compares classes writes status/100 == 5.
func hundreds(v ssa.Value) ssa.Value {
	b, ok := v.(*ssa.BinOp)
	if !ok || b.Op != token.QUO {
		return nil
	}
	if c, ok := b.Y.(*ssa.Const); !ok || c.Int64() != 100 {
		return nil
	}
	return b.X
}
