package retryloop

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// retrier is what callers need to know of the region when it attempts a
// parameter of its function; nil when it does not.
func (r *Region) retrier() *fact.Retrier {
	for _, op := range r.Ops {
		param, method := r.f.attempted(op.Common())
		field := ""
		if param < 0 {
			if param, field = r.f.fieldOfParam(op.Common()); param < 0 {
				continue
			}
		}
		h := &fact.Retrier{Param: param, Method: method, Field: field, Delay: r.Delay.Class, Every: -1, Default: r.Delay.Default, Spoken: r.Spoken || saysRetry(dataflow.PathOf(r.Fn))}
		if r.Delay.Class == fact.Fixed && r.Delay.Param {
			// What is computed from a parameter may be any schedule.
			if h.Every = delay.ParamOfAll(r.f.Scope, r.Waits); h.Every < 0 {
				h.Delay = fact.Pluggable
			}
		}
		h.Ends, h.Only, h.Picky = r.ends(op)
		h.Limit()
		return h
	}
	return nil
}

// attempted returns the parameter that c calls, or whose only method it calls;
// -1 when it calls something else. A method counts when it takes nothing but a
// context: a client that a request is handed to is no callback.
func (f *finder) attempted(c *ssa.CallCommon) (param int, method string) {
	if !c.IsInvoke() {
		if c.StaticCallee() != nil {
			return -1, ""
		}
		return f.ParamOf(c.Value), ""
	}
	for _, a := range c.Args {
		if !dataflow.IsContext(a.Type()) {
			return -1, ""
		}
	}
	if i, ok := c.Value.Type().Underlying().(*types.Interface); !ok || i.NumMethods() != 1 {
		return -1, ""
	}
	return f.ParamOf(c.Value), c.Method.Name()
}

// fieldOfParam returns the parameter in whose field the function is that c calls:
// a struct of options, with what is to be attempted among them. It is -1 for any
// other call.
func (f *finder) fieldOfParam(c *ssa.CallCommon) (param int, field string) {
	if c.IsInvoke() || c.StaticCallee() != nil || !f.handed(c.Value) {
		return -1, ""
	}
	switch v := c.Value.(type) {
	case *ssa.Field:
		return f.ParamOf(v.X), dataflow.FieldOf(v)
	case *ssa.UnOp:
		fa, ok := v.X.(*ssa.FieldAddr)
		if !ok {
			return -1, ""
		}
		base := fa.X
		if a, ok := base.(*ssa.Alloc); ok { // the parameter, whose address is taken
			if st := f.StoresTo(a); len(st) == 1 {
				base = st[0].Val
			}
		}
		return f.ParamOf(base), dataflow.FieldOf(fa)
	}
	return -1, ""
}

// handsOn returns what callers need to know of a function that hands a parameter
// to a retry helper, as it is or called by a literal: a helper over a helper.
func (f *finder) handsOn() *fact.Retrier {
	for c := range dataflow.Instrs[*ssa.Call](f.Fn) {
		inner := f.pkg.known(c.Common())
		v := callbackArg(inner, c)
		if v == nil {
			continue
		}
		h := *inner
		h.Param = f.ParamOf(v)
		if h.Param < 0 {
			var call *ssa.Call
			if h.Param, call = f.adapted(v); h.Param < 0 {
				continue
			}
			h.Method = ""
			switch {
			case inner.Contract == fact.UntilDone && !saysDone(call):
				if !f.pkg.notDone(call) {
					continue
				}
				h.Contract, h.Picky, h.Ends, h.Only = fact.OnFailure, true, nil, nil
			// Errors that the literal makes of those of the parameter are its choice of
			// what is tried again.
			case !f.pkg.passesOn(call):
				h.Picky = h.Picky || len(h.Only) > 0 || len(h.Ends) > 0
				h.Ends, h.Only = nil, nil
			}
		}
		if inner.Every >= 0 && inner.Every < len(c.Common().Args) {
			d := c.Common().Args[inner.Every]
			if h.Every = f.ParamOf(d); h.Every < 0 {
				given := delay.Classify(f.Scope, d, nil, nil)
				h.Delay, h.Default = given.Class, h.Default || given.Default
			}
		}
		h.Spoken = h.Spoken || saysRetry(f.Fn.Name())
		return &h
	}
	return nil
}

// callbackArg returns the argument that the helper h calls again: the first
// function among them where the parameter is not known. It is nil when c has
// none.
func callbackArg(h *fact.Retrier, c *ssa.Call) ssa.Value {
	if h == nil {
		return nil
	}
	args := c.Common().Args
	if h.Param >= 0 {
		if h.Param >= len(args) {
			return nil
		}
		return args[h.Param]
	}
	for _, a := range args {
		if _, ok := a.Type().Underlying().(*types.Signature); ok {
			return a
		}
	}
	return nil
}

// adapted returns the parameter of f that v calls, with the call, when v is a
// literal, or what a function of the package makes of a parameter: a literal that
// calls it.
func (f *finder) adapted(v ssa.Value) (param int, call *ssa.Call) {
	c, ok := dataflow.Strip(v).(*ssa.Call)
	if !ok {
		return f.calledByLiteral(v)
	}
	g := f.Known.Body(c.Common())
	if g == nil || len(g.Blocks) != 1 {
		return -1, nil
	}
	for ret := range dataflow.Instrs[*ssa.Return](g) {
		if len(ret.Results) != 1 {
			continue
		}
		if i, call := f.pkg.of(g).calledByLiteral(ret.Results[0]); call != nil && i < len(c.Common().Args) {
			return f.ParamOf(c.Common().Args[i]), call
		}
	}
	return -1, nil
}

// calledByLiteral returns the parameter of f that the literal v calls, with the
// call; nil when it calls none.
func (f *finder) calledByLiteral(v ssa.Value) (param int, call *ssa.Call) {
	lit, bindings := dataflow.FuncValue(v)
	if lit == nil || lit.Parent() == nil {
		return -1, nil
	}
	for c := range dataflow.Instrs[*ssa.Call](lit) {
		called := dataflow.Strip(c.Common().Value)
		if u, ok := called.(*ssa.UnOp); ok {
			called = u.X
		}
		fv, ok := called.(*ssa.FreeVar)
		if !ok || c.Common().IsInvoke() {
			continue
		}
		bound := bindings[slices.Index(lit.FreeVars, fv)]
		if st := f.StoresTo(bound); len(st) == 1 {
			bound = st[0].Val
		}
		if i := f.ParamOf(bound); i >= 0 {
			return i, c
		}
	}
	return -1, nil
}

// passesOn reports whether the function around c fails with nothing but the error
// of c, as it is or wrapped.
func (p *finders) passesOn(c *ssa.Call) bool {
	s := p.Known.Scope(c.Parent())
	for ret := range dataflow.Instrs[*ssa.Return](c.Parent()) {
		v := errorResult(ret)
		if v == nil || dataflow.IsNil(v) {
			continue
		}
		from := s.Origins(v, nil)
		if len(p.kindsOf(s, v)) > 0 || len(from) != 1 || from[0] != c {
			return false
		}
	}
	return true
}

// saysDone reports whether a call says by its first result, a bool, whether it is
// done.
func saysDone(c *ssa.Call) bool {
	res := c.Common().Signature().Results()
	return res.Len() > 0 && dataflow.IsBool(res.At(0).Type())
}

// notDone reports whether the literal around c says that it is not done where a
// branch has looked at the error of c, and keeps that to itself: a helper that
// retries by one which waits for a state.
func (p *finders) notDone(c *ssa.Call) bool {
	f := p.of(c.Parent())
	res := f.Fn.Signature.Results()
	if res.Len() != 2 || !dataflow.IsBool(res.At(0).Type()) || againWord.MatchString(res.At(0).Name()) {
		return false
	}
	for _, b := range f.Fn.Blocks {
		br := dataflow.IfOf(b)
		if br == nil {
			continue
		}
		err, _ := errorCheck(br.Cond)
		if !f.onFailure(br.Cond, c) && !(err != nil && slices.Contains(f.Origins(err, nil), c)) {
			continue
		}
		for _, to := range b.Succs {
			done, ok := returnsBool(to)
			if ret, isReturn := to.Instrs[len(to.Instrs)-1].(*ssa.Return); ok && !done && isReturn && dataflow.IsNil(ret.Results[1]) {
				return true
			}
		}
	}
	return false
}

// known returns what is known of the function behind c as a retry helper: by its
// code or, when that says nothing, by the list of libraries. It is nil for any
// other function.
func (p *finders) known(c *ssa.CallCommon) *fact.Retrier {
	if sum := p.Known.Of(c); sum != nil && sum.Retrier != nil {
		return sum.Retrier
	}
	return knownRetrier(c)
}

// contract is known for helpers of one contract.
func (p *finders) contract(c *ssa.CallCommon, of fact.Contract) *fact.Retrier {
	if h := p.known(c); h != nil && h.Contract == of {
		return h
	}
	return nil
}

// helper is known for those that call again what has failed.
func (p *finders) helper(c *ssa.CallCommon) *fact.Retrier { return p.contract(c, fact.OnFailure) }
