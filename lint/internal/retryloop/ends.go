package retryloop

import (
	"go/token"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// ends returns which failures of op end the region, and which alone lead to
// another attempt, by their kinds: what its branches ask of the error, and by
// the side on which they leave. picky says that a branch on the failure was not
// understood.
//
// Libraries mark errors as permanent in many ways (a wrapper type, a sentinel, a
// bool beside the error), and each of them shows in a branch of the loop.
func (r *Region) ends(op *ssa.Call) (ends, only []string, picky bool) {
	if r.Loop == nil {
		return nil, nil, r.InspectsError()
	}
	for _, b := range r.f.Fn.Blocks {
		br := dataflow.IfOf(b)
		if br == nil || !r.Loop.Blocks[b] || !r.mayLeave(b) {
			continue
		}
		if r.endsByAnyError(br, op) {
			ends = fact.AddKind(ends, anyError)
			continue
		}
		a := r.f.asks(br.Cond, op, 0)
		if !a.known {
			picky = picky || r.f.onFailure(br.Cond, op) || r.onStatusOf(br)
			continue
		}
		_, again := r.Loop.Walk(b.Succs[0], nil)
		// On a condition that ends the region when it holds, or when it does not.
		switch {
		case again == a.not:
			for _, k := range a.kinds {
				ends = fact.AddKind(ends, k)
			}
		case len(a.kinds) == 1 && a.kinds[0][0] == '#': // the same bool, the other way around
			ends = fact.AddKind(ends, a.kinds[0]+"=false")
		default:
			for _, k := range a.kinds {
				only = fact.AddKind(only, k)
			}
		}
	}
	return ends, only, picky
}

// onStatusOf reports whether a branch looks at the status in a failure, such as a
// field of an error.
func (r *Region) onStatusOf(br *ssa.If) bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool { return t.If == br && t.Status })
}

// anyError stands for every error, in the Ends of a helper whose callback asks for
// another attempt in another way.
const anyError = "error"

// endsByAnyError reports whether a branch on whether there is an error of op
// leaves the region when there is one.
func (r *Region) endsByAnyError(br *ssa.If, op *ssa.Call) bool {
	err, failed := errorCheck(br.Cond)
	if err == nil || !slices.Contains(r.f.Origins(err, r.Loop), op) {
		return false
	}
	_, again := r.Loop.Walk(br.Block().Succs[failed], nil)
	return !again
}

// onFailure reports whether a condition looks at the failure of op, other than
// by asking whether there is one.
func (f *finder) onFailure(cond ssa.Value, op *ssa.Call) bool {
	switch c := cond.(type) {
	case *ssa.UnOp:
		return c.Op == token.NOT && f.onFailure(c.X, op)
	case *ssa.Call:
		if dataflow.CalleePkg(c.Common()) == "context" {
			return false
		}
		return slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool {
			return implementsError(a) && slices.Contains(f.Origins(a, nil), op)
		})
	case *ssa.Extract:
		t, ok := c.Tuple.(*ssa.TypeAssert)
		return ok && slices.Contains(f.Origins(t.X, nil), op)
	case *ssa.BinOp:
		return implementsError(c.X) && implementsError(c.Y) && !dataflow.IsNil(c.X) && !dataflow.IsNil(c.Y)
	case *ssa.Phi:
		return slices.ContainsFunc(c.Edges, func(e ssa.Value) bool {
			_, inner := e.(*ssa.Phi)
			return !inner && f.onFailure(e, op)
		})
	}
	return false
}

// ask is what a condition asks of an error: whether it is one of the kinds, or
// none of them.
type ask struct {
	known bool
	kinds []string
	not   bool
}

// askOf is the ask for one kind. A kind without a name is not known.
func askOf(kind string) ask { return ask{known: kind != "", kinds: []string{kind}} }

// asks reads a condition on the failure of op; op is nil in a predicate, which
// asks about its parameter. It enters predicates of the package, and asks the
// facts about those of others. Three levels are enough for predicates that call
// each other.
func (f *finder) asks(v ssa.Value, op *ssa.Call, depth int) ask {
	if depth > 3 {
		return ask{}
	}
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op == token.NOT {
			a := f.asks(v.X, op, depth)
			a.not = !a.not
			return a
		}
		// A bool field of the failure itself: !failure.Retryable.
		if fa, ok := v.X.(*ssa.FieldAddr); ok && v.Op == token.MUL {
			return f.asksField(fa, op)
		}
	case *ssa.Extract:
		switch t := v.Tuple.(type) {
		case *ssa.TypeAssert:
			if t.CommaOk && v.Index == 1 && implementsError(t.X) {
				return askOf(dataflow.TypeKind(t.AssertedType))
			}
		case *ssa.Call:
			if t == op {
				return askOf("#" + strconv.Itoa(v.Index))
			}
			if _, kind := dataflow.Sought(t.Common()); kind != nil {
				return askOf(dataflow.TypeKind(kind))
			}
		}
	case *ssa.BinOp:
		if !implementsError(v.X) || v.Op != token.EQL && v.Op != token.NEQ {
			return ask{}
		}
		kind := dataflow.VariableKind(v.Y)
		if kind == "" {
			kind = dataflow.VariableKind(v.X)
		}
		a := askOf(kind)
		a.not = v.Op == token.NEQ
		return a
	case *ssa.Call:
		return f.asksCall(v, depth)
	}
	return ask{}
}

// asksField reads a bool field of an error type that op returns.
func (f *finder) asksField(fa *ssa.FieldAddr, op *ssa.Call) ask {
	kind := dataflow.TypeKind(fa.X.Type())
	if op == nil || kind == "" || !dataflow.ImplementsError(fa.X.Type()) || !slices.Contains(f.Origins(fa.X, nil), op) {
		return ask{}
	}
	return askOf(kind + "." + dataflow.FieldOf(fa) + "=true")
}

// asksCall reads a call of a predicate on errors.
func (f *finder) asksCall(c *ssa.Call, depth int) ask {
	args := c.Common().Args
	if dataflow.CalleePkg(c.Common()) == "errors" && len(args) == 2 {
		switch dataflow.CalleeName(c.Common()) {
		case "Is":
			if mi, ok := args[1].(*ssa.MakeInterface); ok { // errors.Is(err, stopError{})
				return askOf(dataflow.TypeKind(mi.X.Type()))
			}
			return askOf(dataflow.VariableKind(args[1]))
		case "As":
			if _, t := dataflow.Sought(c.Common()); t != nil {
				return askOf(dataflow.TypeKind(t))
			}
		}
		return ask{}
	}
	if !slices.ContainsFunc(args, implementsError) {
		return ask{}
	}
	if fn := f.Known.Body(c.Common()); fn != nil {
		return f.pkg.of(fn).predicate(depth + 1)
	}
	if fn := f.pkg.defaultOf(c.Common()); fn != nil {
		return f.pkg.of(fn).predicate(depth + 1)
	}
	if sum := f.Known.Of(c.Common()); sum != nil && len(sum.Asks) > 0 {
		return ask{true, sum.Asks, sum.AsksNot}
	}
	return ask{}
}

// predicate reads a function that returns what it asks of an error, in one
// expression or by branches that return a constant.
func (f *finder) predicate(depth int) ask {
	res := f.Fn.Signature.Results()
	if res.Len() != 1 || !dataflow.IsBool(res.At(0).Type()) || len(f.Fn.Blocks) > 12 {
		return ask{}
	}
	var found ask
	said := false // there is a return of that answer, beside the branches
	var otherwise bool
	merge := func(a ask) bool {
		if !a.known || found.known && found.not != a.not {
			return false
		}
		found.known, found.not = true, a.not
		for _, k := range a.kinds {
			found.kinds = fact.AddKind(found.kinds, k)
		}
		return true
	}
	for _, b := range f.Fn.Blocks {
		ret, isReturn := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
		if br := dataflow.IfOf(b); br != nil {
			answer, ok := returnsBool(b.Succs[0])
			if err, _ := errorCheck(br.Cond); err != nil {
				continue
			}
			a := f.asks(br.Cond, nil, depth)
			a.not = a.not == answer // true answers keep the sense, false ones turn it around
			if !ok || !merge(a) {
				return ask{}
			}
			continue
		}
		if !isReturn {
			continue
		}
		answer, isConst := dataflow.ConstBool(ret.Results[0])
		switch {
		case !isConst:
			if !merge(f.asks(ret.Results[0], nil, depth)) {
				return ask{}
			}
		case len(b.Preds) == 0 || dataflow.IfOf(b.Preds[0]) == nil || b.Preds[0].Succs[0] != b:
			said, otherwise = true, answer
		}
	}
	// The answer for all other errors must be the opposite.
	if said && otherwise != found.not || slices.Contains(found.kinds, fact.OtherKinds) {
		return ask{}
	}
	return found
}

// returnsBool reports which bool constant a block returns at once.
func returnsBool(b *ssa.BasicBlock) (answer, ok bool) {
	ret, isReturn := b.Instrs[len(b.Instrs)-1].(*ssa.Return)
	if !isReturn || len(b.Instrs) > 2 {
		return false, false
	}
	return dataflow.ConstBool(ret.Results[0])
}

// defaultOf returns the predicate that a field holds by default: the only
// function that the package itself stores to it. Options store what they are
// given, which is the caller's choice. It is nil for any other call.
func (p *finders) defaultOf(c *ssa.CallCommon) (only *ssa.Function) {
	u, ok := c.Value.(*ssa.UnOp)
	if !ok || u.Op != token.MUL {
		return nil
	}
	for _, st := range p.Known.FieldStores(dataflow.FieldVar(u.X)) {
		fn := p.function(st.Parent(), st.Val)
		switch {
		case fn == nil || fn == only:
		case only != nil:
			return nil
		default:
			only = fn
		}
	}
	return only
}
