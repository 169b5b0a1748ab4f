package dataflow

import (
	"golang.org/x/tools/go/ssa"
)

// Origins returns the calls inside l (anywhere when l is nil) whose failure v
// carries: v is the error, the status or the result that a branch looks at.
//
// A wrapped error is the failure of the call inside: fmt.Errorf("get: %w",
// get()) leads to get. What was made outside of l is left out, since a test of
// it says nothing of the attempt at hand. The walk is bounded, so a chain of
// more than a dozen steps is not followed to its end.
func (r *Func) Origins(v ssa.Value, l *Loop) []*ssa.Call {
	var calls []*ssa.Call
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value, depth int)
	visit = func(v ssa.Value, depth int) {
		if v == nil || seen[v] || depth > 12 {
			return
		}
		seen[v] = true
		switch v := v.(type) {
		case *ssa.Call:
			if args := Wrapped(v); args != nil {
				for _, a := range args {
					visit(a, depth+1)
				}
				return
			}
			if err, _ := Sought(v.Common()); err != nil {
				visit(err, depth+1)
				return
			}
			if l == nil || l.Contains(v) {
				calls = append(calls, v)
			}
		case *ssa.Extract, *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.ChangeType, *ssa.TypeAssert, *ssa.Field:
			visit(Operand(v), depth+1)
		// A branch of the loop that did not make the value leads elsewhere: the
		// edge from before the loop holds what the variable began with.
		case *ssa.Phi:
			for i, e := range v.Edges {
				if l == nil || l.Blocks[v.Block().Preds[i]] {
					visit(e, depth+1)
				}
			}
		case *ssa.UnOp:
			for _, s := range r.StoresTo(v.X) {
				if l == nil || l.Contains(s) {
					visit(s.Val, depth+1)
				}
			}
			calls = append(calls, closureCalls(v.X, l)...)
			// An operation may put its failure into its result. Then the struct is
			// what the call made, and the field is where to look.
			if fa, ok := v.X.(*ssa.FieldAddr); ok { // resp.Err, result.Error
				visit(fa.X, depth+1)
			}
		case *ssa.Alloc: // a struct that an operation returned
			for _, s := range r.stores[v] {
				if l == nil || l.Contains(s) {
					visit(s.Val, depth+1)
				}
			}
		}
	}
	visit(v, 0)
	return calls
}

// closureCalls returns the calls in l of closures that assign to the captured
// variable addr: op := func() { resp, err = get() }.
// A call of the closure is then the operation, though its result is not used.
func closureCalls(addr ssa.Value, l *Loop) (calls []*ssa.Call) {
	if _, ok := addr.(*ssa.Alloc); !ok {
		return nil
	}
	for mc := range Refs[*ssa.MakeClosure](addr) {
		if !Assigns(mc, addr) {
			continue
		}
		for c := range Refs[*ssa.Call](mc) {
			if c.Common().Value == ssa.Value(mc) && (l == nil || l.Contains(c)) {
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// Wrapped returns the error arguments of a call that only wraps or converts an
// error, and nil for any other call. Such a call can fail at nothing, so it is
// no operation; what it was given may be.
func Wrapped(c *ssa.Call) []ssa.Value {
	if !IsError(c.Type()) {
		return nil
	}
	switch pkg := CalleePkg(c.Common()); {
	case pkg == "fmt" && CalleeName(c.Common()) == "Errorf", pkg == "errors", Under(pkg, "github.com/pkg/errors"):
	// A function of one error that yields one error is a conversion, whatever
	// its name. One with more parameters may do something.
	case Static(c.Common()) != nil && onlyErrorParam(c.Common()):
	default:
		return nil
	}
	var errs []ssa.Value
	for _, a := range c.Common().Args {
		if IsError(a.Type()) {
			errs = append(errs, a)
		} else {
			errs = append(errs, variadicErrors(a)...)
		}
	}
	return errs
}

// onlyErrorParam reports whether c converts one error to another: err ->
// toTyped(err).
// A method is left out: its receiver may do the work.
func onlyErrorParam(c *ssa.CallCommon) bool {
	sig := c.Signature()
	return sig.Recv() == nil && sig.Params().Len() == 1 && IsError(sig.Params().At(0).Type()) && !sig.Variadic()
}

// variadicErrors finds the errors that are packed into a ...any argument: SSA
// makes an array, stores each argument in it and passes a slice of it.
func variadicErrors(v ssa.Value) (errs []ssa.Value) {
	s, ok := v.(*ssa.Slice)
	if !ok {
		return nil
	}
	for ia := range Refs[*ssa.IndexAddr](s.X) {
		for st := range Refs[*ssa.Store](ia) {
			val := st.Val
			switch val.(type) {
			case *ssa.ChangeInterface, *ssa.MakeInterface:
				val = Operand(val)
			}
			if ImplementsError(val.Type()) {
				errs = append(errs, val)
			}
		}
	}
	return errs
}
