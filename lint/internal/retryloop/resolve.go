package retryloop

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Func follows values back to where they were made, through the shapes
// that SSA leaves between a call and the test of its result.
type Func struct {
	fn        *ssa.Function
	loops     []*Loop
	innermost map[*ssa.BasicBlock]*Loop
	stores    map[ssa.Value][]*ssa.Store // by address
}

func newFunc(fn *ssa.Function) *Func {
	r := &Func{fn: fn, stores: map[ssa.Value][]*ssa.Store{}}
	r.loops, r.innermost = loopsOf(fn)
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			if s, ok := in.(*ssa.Store); ok {
				r.stores[s.Addr] = append(r.stores[s.Addr], s)
			}
		}
	}
	return r
}

// storesTo returns the stores to the same variable as addr: the same cell, or
// the same field of the same base.
func (r *Func) storesTo(addr ssa.Value) []*ssa.Store {
	if s := r.stores[addr]; len(s) > 0 {
		return s
	}
	var found []*ssa.Store
	if p, ok := addr.(*ssa.Phi); ok { // a loop variable that a closure captures: a cell for each turn
		for _, e := range p.Edges {
			if _, isCell := e.(*ssa.Alloc); isCell {
				found = append(found, r.stores[e]...)
			}
		}
		return found
	}
	fa, ok := addr.(*ssa.FieldAddr)
	if !ok {
		return nil
	}
	for a, s := range r.stores {
		if o, ok := a.(*ssa.FieldAddr); ok && o.Field == fa.Field && sameBase(o.X, fa.X) {
			found = append(found, s...)
		}
	}
	return found
}

// sameBase reports whether two addresses certainly name the same variable.
func sameBase(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *ssa.UnOp:
		b, ok := b.(*ssa.UnOp)
		return ok && a.Op == b.Op && sameBase(a.X, b.X)
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && sameBase(a.X, b.X)
	}
	return false
}

// origins returns the calls inside l (anywhere when l is nil) whose failure v
// carries.
func (r *Func) origins(v ssa.Value, l *Loop) []*ssa.Call {
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
			if args := wrapped(v); args != nil {
				for _, a := range args {
					visit(a, depth+1)
				}
				return
			}
			if l == nil || l.contains(v) {
				calls = append(calls, v)
			}
		case *ssa.Extract:
			visit(v.Tuple, depth+1)
		case *ssa.Phi:
			for i, e := range v.Edges {
				if l == nil || l.Blocks[v.Block().Preds[i]] {
					visit(e, depth+1)
				}
			}
		case *ssa.MakeInterface:
			visit(v.X, depth+1)
		case *ssa.ChangeInterface:
			visit(v.X, depth+1)
		case *ssa.ChangeType:
			visit(v.X, depth+1)
		case *ssa.TypeAssert:
			visit(v.X, depth+1)
		case *ssa.UnOp:
			for _, s := range r.storesTo(v.X) {
				if l == nil || l.contains(s) {
					visit(s.Val, depth+1)
				}
			}
			calls = append(calls, closureCalls(v.X, l)...)
			if fa, ok := v.X.(*ssa.FieldAddr); ok { // resp.Err, result.Error
				visit(fa.X, depth+1)
			}
		case *ssa.Field:
			visit(v.X, depth+1)
		case *ssa.Alloc: // a struct that an operation returned
			for _, s := range r.stores[v] {
				if l == nil || l.contains(s) {
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
func closureCalls(addr ssa.Value, l *Loop) (calls []*ssa.Call) {
	if _, ok := addr.(*ssa.Alloc); !ok || addr.Referrers() == nil {
		return nil
	}
	for _, ref := range *addr.Referrers() {
		mc, ok := ref.(*ssa.MakeClosure)
		if !ok || mc.Referrers() == nil {
			continue
		}
		fn := mc.Fn.(*ssa.Function)
		for i, b := range mc.Bindings {
			if b != addr || !storedIn(fn, fn.FreeVars[i]) {
				continue
			}
			for _, u := range *mc.Referrers() {
				if c, ok := u.(*ssa.Call); ok && c.Common().Value == ssa.Value(mc) && (l == nil || l.contains(c)) {
					calls = append(calls, c)
				}
			}
		}
	}
	return calls
}

// wrapped returns the error arguments of a call that only wraps or converts an
// error, and nil for any other call.
func wrapped(c *ssa.Call) []ssa.Value {
	if !isError(c.Type()) {
		return nil
	}
	switch pkg := CalleePkg(c.Common()); {
	case pkg == "fmt" && CalleeName(c.Common()) == "Errorf", pkg == "errors", under(pkg, "github.com/pkg/errors"):
	case static(c.Common()) != nil && onlyErrorParam(c.Common()):
	default:
		return nil
	}
	var errs []ssa.Value
	for _, a := range c.Common().Args {
		switch {
		case isError(a.Type()):
			errs = append(errs, a)
		default:
			errs = append(errs, variadicErrors(a)...)
		}
	}
	return errs
}

// onlyErrorParam reports whether c converts one error to another: err ->
// toTyped(err).
func onlyErrorParam(c *ssa.CallCommon) bool {
	sig := c.Signature()
	return sig.Recv() == nil && sig.Params().Len() == 1 && isError(sig.Params().At(0).Type()) && !sig.Variadic()
}

// variadicErrors finds the errors that are packed into a ...any argument.
func variadicErrors(v ssa.Value) (errs []ssa.Value) {
	s, ok := v.(*ssa.Slice)
	if !ok || s.X.Referrers() == nil {
		return nil
	}
	for _, ref := range *s.X.Referrers() {
		ia, ok := ref.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, u := range *ia.Referrers() {
			st, ok := u.(*ssa.Store)
			if !ok {
				continue
			}
			val := st.Val
			switch x := val.(type) {
			case *ssa.ChangeInterface:
				val = x.X
			case *ssa.MakeInterface:
				val = x.X
			}
			if types.Implements(val.Type(), errorType) {
				errs = append(errs, val)
			}
		}
	}
	return errs
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
