package status

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// isNil evaluates whether an error is nil: an operation that yields a response
// has worked, a helper that turns the status into an error is entered, and
// anything else is taken to have worked. The assumption is about responses, so
// a connection that breaks is none of its business.
// With gRPC the error is the response, so its code decides.
func (w *world) isNil(v ssa.Value, depth int) truth {
	if depth > 6 || w.enough() {
		return maybe
	}
	w.nest++
	defer func() { w.nest-- }()
	if w.grpc && coded(w.judge.known, v, 0) {
		return truthOf(w.status == 0)
	}
	switch v := v.(type) {
	case *ssa.Const:
		return truthOf(v.IsNil())
	case *ssa.Parameter:
		if w.cert {
			return no
		}
		if !w.grpc && givenResponse(v.Parent()) {
			return yes
		}
	// A concrete error in an interface is an error, whatever it holds.
	case *ssa.MakeInterface:
		return no
	case *ssa.ChangeInterface:
		return w.isNil(v.X, depth+1)
	case *ssa.UnOp:
		if x := cellValue(v); x != ssa.Value(v) {
			return w.isNil(x, depth+1)
		}
		if _, ok := v.X.(*ssa.FieldAddr); ok && !w.grpc { // result.err
			return yes
		}
	case *ssa.Extract:
		if c, ok := v.Tuple.(*ssa.Call); ok {
			return w.callNil(c, v.Index)
		}
	case *ssa.Call:
		return w.callNil(v, -1)
	case *ssa.Phi:
		var edges agreement
		for _, e := range v.Edges {
			if e != ssa.Value(v) && !edges.add(w.isNil(e, depth+1)) {
				return maybe
			}
		}
		return edges.truth
	}
	return maybe
}

// callNil evaluates whether result index of a call is nil; the only result has
// the index -1. A helper yields a failure only when the status has decided it:
// what fails for other reasons is taken to have worked.
// The marks of libraries, such as Permanent, are known by name because their
// packages are many.
func (w *world) callNil(c *ssa.Call, index int) truth {
	com := c.Common()
	switch pkg, name := dataflow.CalleePkg(com), dataflow.CalleeName(com); {
	case pkg == "fmt" && name == "Errorf", pkg == "errors" && name == "New", name == "RetryableError":
		return no
	// The helper around it looks at the mark and does not try again. That is
	// no success either, so neither branch is certain.
	case name == "Permanent" || name == "Unrecoverable": // a failure, but a final one
		return maybe
	}
	// The generated client returns the failure that is assumed.
	if w.grpc && w.status != 0 && isRPC(com) {
		w.used = true
		return no
	}
	if dataflow.Static(com) == nil || w.depth > 3 {
		return yes
	}
	fn := w.judge.known.Body(com)
	// A function of another package is known by its fact alone.
	if fn == nil {
		if sum := w.judge.known.Of(com); sum != nil && !w.grpc && sum.Fails&Bit(w.status) != 0 {
			w.used = true
			return no
		}
		return yes
	}
	sub := w.enter(fn, com.Args)
	t := sub.result(fn, max(index, 0), true)
	if t == no && sub.used {
		w.used = true
		return no
	}
	return yes
}

// isRPC reports whether a call is one of a generated gRPC client: it takes
// grpc.CallOptions.
// The generated code has no other mark that is the same in all versions.
func isRPC(c *ssa.CallCommon) bool {
	sig := c.Signature()
	if !sig.Variadic() {
		return false
	}
	sl, ok := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice)
	return ok && dataflow.IsNamed(sl.Elem(), "google.golang.org/grpc", "CallOption")
}

// givenResponse reports whether fn is handed a response beside an error: then
// the error says that there was none, and is nil under the assumption.
// CheckRetry of retryablehttp is such a function.
func givenResponse(fn *ssa.Function) bool {
	return slices.ContainsFunc(fn.Params, func(p *ssa.Parameter) bool { return strings.HasSuffix(dataflow.TypeName(p.Type()), "Response") })
}

// coded reports whether the gRPC code of the error v is looked at, here or in a
// function of the package that is given it: then v is the response of a server.
// Without that, the error may be a broken connection, of which the assumption
// says nothing.
func coded(known *fact.Table, v ssa.Value, depth int) bool {
	if !dataflow.IsError(v.Type()) || depth > 2 {
		return false
	}
	for c := range dataflow.Refs[*ssa.Call](v) {
		if dataflow.CalleePkg(c.Common()) == "google.golang.org/grpc/status" {
			return true
		}
		fn := known.Body(c.Common())
		if fn == nil {
			continue
		}
		for i, a := range c.Common().Args {
			if a == v && i < len(fn.Params) && coded(known, fn.Params[i], depth+1) {
				return true
			}
		}
	}
	return false
}
