package status

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// errorIs evaluates whether an error is another one, or wraps it: a variable of
// the package that a function of it returns for some statuses. Those of the
// standard library say that there was no response.
func (e *eval) errorIs(v, target ssa.Value) split {
	u, ok := target.(*ssa.UnOp)
	if !ok || e.cert {
		return split{}
	}
	g, ok := u.X.(*ssa.Global)
	if !ok {
		return split{}
	}
	if g.Object() != nil && standard(g.Object().Pkg()) {
		return e.always(false)
	}
	var is func(ssa.Value) split
	is = func(v ssa.Value) split {
		switch v := v.(type) {
		case *ssa.UnOp:
			if v.X == ssa.Value(g) {
				return e.always(true)
			}
			return e.sentinel(v, is)
		case *ssa.MakeInterface:
			return e.holds(v.X.Type(), "Is")
		}
		return split{}
	}
	return e.whereError(v, e.made(v, is))
}

// sentinel evaluates a variable that holds an error by what it is made of.
func (e *eval) sentinel(u *ssa.UnOp, is func(ssa.Value) split) split {
	g, ok := u.X.(*ssa.Global)
	if !ok {
		return split{}
	}
	first := e.j.use(g).first
	if first == nil {
		return e.always(false) // of another package: one of its own
	}
	return e.made(first, is)
}

// holds evaluates whether an error of some type, which is not the one that is asked
// for, may be it all the same: by what it wraps, or by a method that says so.
func (e *eval) holds(t types.Type, method string) split {
	for m := range types.NewMethodSet(t).Methods() {
		if name := m.Obj().Name(); name == "Unwrap" || name == method {
			return split{}
		}
	}
	return e.always(false)
}

// whereError leaves out the statuses for which there is no error.
func (e *eval) whereError(v ssa.Value, is split) split {
	none := e.null(v).yes
	return split{is.yes.Minus(none), is.no.Or(none)}
}

// errorAs evaluates whether an error is of a type, or wraps one. A type of errors
// that hold a status is what a failed response is made into, unless the code
// that makes it can be read and says otherwise.
func (e *eval) errorAs(v ssa.Value, t types.Type) split {
	if e.cert {
		return split{}
	}
	if n, ok := types.Unalias(deref(t)).(*types.Named); ok && standard(n.Obj().Pkg()) {
		return e.always(false)
	}
	iface, _ := t.Underlying().(*types.Interface)
	var isOf func(ssa.Value) split
	isOf = func(v ssa.Value) split {
		switch v := v.(type) {
		case *ssa.UnOp:
			return e.sentinel(v, isOf)
		case *ssa.MakeInterface:
			if has := v.X.Type(); types.Identical(has, t) || iface != nil && types.Implements(has, iface) {
				return e.always(true)
			}
			return e.holds(v.X.Type(), "As")
		}
		return split{}
	}
	is := e.made(v, isOf)
	is = e.whereError(v, is)
	if e.grpc || !holdsStatus(t) {
		return is
	}
	open := e.all.Minus(is.yes).Minus(is.no)
	return split{is.yes.Or(open.Minus(e.success)), is.no.Or(open.And(e.success))}
}

// made evaluates an error by the values that it may be made of: those that a
// function of the package returns, or wraps. is judges one of them. What comes
// from elsewhere is open.
func (e *eval) made(v ssa.Value, is func(ssa.Value) split) split {
	if !e.spend() {
		return split{}
	}
	defer e.done()
	switch v := v.(type) {
	case *ssa.Const:
		return e.always(false)
	case *ssa.MakeInterface:
		return is(v)
	case *ssa.ChangeInterface:
		return e.made(v.X, is)
	case *ssa.Parameter: // of a function that was entered
		if i := slices.Index(e.sc.Fn.Params, v); e.caller != nil && i >= 0 && i < len(e.args) {
			return e.caller.made(e.args[i], is)
		}
	case *ssa.UnOp:
		if _, ok := v.X.(*ssa.Global); ok {
			return is(v)
		}
		if x := cellValue(v); x != ssa.Value(v) {
			return e.made(x, is)
		}
	case *ssa.Phi:
		return e.merged(v, func(v ssa.Value) split { return e.made(v, is) })
	case *ssa.Extract:
		if c, ok := v.Tuple.(*ssa.Call); ok {
			return e.madeBy(c, v.Index, is)
		}
	case *ssa.Call:
		return e.madeBy(v, 0, is)
	}
	return split{}
}

// madeBy is made for a result of a call.
func (e *eval) madeBy(c *ssa.Call, index int, is func(ssa.Value) split) split {
	com := c.Common()
	pkg, name := dataflow.CalleePkg(com), dataflow.CalleeName(com)
	if pkg == "errors" && name == "New" {
		return e.always(false)
	}
	fn, args := e.callee(com)
	wrapped := dataflow.Wrapped(c)
	if fn == nil && (wrapped != nil || pkg == "fmt" && name == "Errorf") {
		s := e.always(false)
		if wrapped != nil && !wraps(com) {
			s = split{} // what it makes of them is not known
		}
		for _, w := range wrapped {
			o := e.made(w, is)
			s = split{s.yes.Or(o.yes), s.no.And(o.no)}
		}
		return s
	}
	if fn == nil || e.depth >= evalDepth {
		return split{}
	}
	sub := e.enter(fn, args)
	return sub.results(index, func(v ssa.Value) split { return sub.made(v, is) })
}

// wraps reports whether a call wraps the errors that it is given, and adds no kind
// of its own.
func wraps(c *ssa.CallCommon) bool {
	pkg := dataflow.CalleePkg(c)
	return pkg == "fmt" || pkg == "errors" || dataflow.Under(pkg, "github.com/pkg/errors")
}

// standard reports whether a package is of the standard library.
func standard(p *types.Package) bool {
	if p == nil {
		return false
	}
	first, _, _ := strings.Cut(p.Path(), "/")
	return !strings.Contains(first, ".") && slices.Contains([]string{"context", "io", "net", "os", "syscall", "errors", "crypto", "bufio", "encoding"}, first)
}

// deref returns what a pointer points to, and any other type as it is.
func deref(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// holdsStatus reports whether a type of errors holds the status of a response: as
// a field, or as a method of an interface or of the type itself.
func holdsStatus(t types.Type) bool {
	if s, ok := deref(t).Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if isStatusField(f.Name(), f.Type()) || dataflow.IsNamed(f.Type(), "net/http", "Response") {
				return true
			}
		}
	}
	for m := range types.NewMethodSet(t).Methods() {
		sig, ok := m.Type().(*types.Signature)
		if ok && sig.Params().Len() == 0 && sig.Results().Len() == 1 && isStatusField(trimGet(m.Obj().Name()), sig.Results().At(0).Type()) {
			return true
		}
	}
	return false
}

// Carries reports whether a value of a type tells of a response: an error, a response
// by its name, or what holds a status.
func Carries(t types.Type) bool {
	return dataflow.IsError(t) || isResponse(t) || holdsStatus(t)
}

// isResponse reports whether a type is called a response.
func isResponse(t types.Type) bool { return strings.HasSuffix(dataflow.TypeName(t), "Response") }
