package retryloop

import (
	"go/types"
	"iter"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Calls yields the calls of the package, in source order.
func (r *Result) Calls() iter.Seq[*ssa.Call] {
	return func(yield func(*ssa.Call) bool) {
		for _, fn := range r.Funcs {
			for c := range dataflow.Instrs[*ssa.Call](fn) {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// RetriedCallbacks yields the calls of retry helpers, each with the function
// that the helper calls again.
func (r *Result) RetriedCallbacks() iter.Seq2[*ssa.Call, *ssa.Function] {
	return func(yield func(*ssa.Call, *ssa.Function) bool) {
		for c := range r.Calls() {
			if fn := r.retriedCallback(c); fn != nil && !yield(c, fn) {
				return
			}
		}
	}
}

// retriedCallback returns the function that c hands to a helper which calls it
// again when it fails, or nil. The helper is one of the package or of another,
// which has a region that calls its parameter, or one of a known library.
// Only a function whose body can be seen is returned, and none whose failures
// all end the retries.
func (p *finders) retriedCallback(c *ssa.Call) *ssa.Function {
	h := p.helper(c.Common())
	if h == nil {
		return nil
	}
	fn := p.callback(c, h)
	if fn == nil || len(fn.Blocks) == 0 || p.neverAgain(h, fn) {
		return nil
	}
	return fn
}

// CallsAgain reports whether a call hands its argument i to a function that calls it
// again: it is what is tried, and not what says whether to try.
func (r *Result) CallsAgain(c *ssa.Call, i int) bool {
	sum := r.Known.Of(c.Common())
	return sum != nil && sum.Retrier != nil && sum.Retrier.Param == i
}

// callback returns the function that c hands to the helper h, or the method of
// what it hands on as an interface. It is nil when that cannot be seen.
func (p *finders) callback(c *ssa.Call, h *fact.Retrier) *ssa.Function {
	a := callbackArg(h, c)
	if a == nil {
		return nil
	}
	if h.Field != "" {
		return p.function(c.Parent(), inField(a, h.Field))
	}
	mi, ok := dataflow.Strip(a).(*ssa.MakeInterface)
	if !ok {
		return p.function(c.Parent(), a)
	}
	obj, _, _ := types.LookupFieldOrMethod(mi.X.Type(), true, c.Parent().Package().Pkg, h.Method)
	if m, ok := obj.(*types.Func); ok && h.Method != "" {
		return c.Parent().Prog.FuncValue(m)
	}
	return nil
}

// inField returns what is stored in a field of the struct that v is, or points to,
// when it is set once where the struct is made; nil otherwise.
func inField(v ssa.Value, field string) (found ssa.Value) {
	if u, ok := v.(*ssa.UnOp); ok {
		v = u.X
	}
	for fa := range dataflow.Refs[*ssa.FieldAddr](v) {
		if dataflow.FieldOf(fa) != field {
			continue
		}
		for s := range dataflow.Refs[*ssa.Store](fa) {
			if found != nil {
				return nil
			}
			found = s.Val
		}
	}
	return found
}

// function returns the function that v is in another one, by its literal, its
// name or as the method of a value, or nil. A variable that is set once is that
// function, as is one of the package that begins with it.
func (p *finders) function(in *ssa.Function, v ssa.Value) *ssa.Function {
	for range 3 {
		if fn, _ := dataflow.FuncValue(v); fn != nil && len(fn.Blocks) > 0 {
			return fn
		}
		u, ok := dataflow.Strip(v).(*ssa.UnOp)
		if !ok {
			return nil
		}
		stores := p.Known.Scope(in).StoresTo(u.X)
		if g, ok := u.X.(*ssa.Global); ok && g.Pkg != nil && g.Pkg.Func("init") != nil {
			in = g.Pkg.Func("init")
			stores = p.Known.Scope(in).StoresTo(g)
		}
		if len(stores) != 1 {
			return nil
		}
		v = stores[0].Val
	}
	return nil
}

// RetriedSends returns the requests that c hands to a function of another
// package which repeats them. Such a function cannot know whether that is safe:
// the choice of the method is the caller's, and so is the finding.
func (r *Result) RetriedSends(c *ssa.Call) []fact.Send {
	sum := r.Known.Of(c.Common())
	if sum == nil || r.Known.Body(c.Common()) != nil {
		return nil
	}
	return send.Through(r.Known, c, sum.Retried)
}

// Selective reports whether the helper that c calls, or its options, choose
// which errors are tried again, in a way that is not understood. What the
// callback returns as an error is then not retried for certain.
func (r *Result) Selective(c *ssa.Call) bool {
	if h := r.helper(c.Common()); h != nil && h.Picky {
		return true
	}
	return r.Known.Body(c.Common()) == nil && selectiveCall(c)
}

// selectWord marks options that say what is tried again, or what is not.
var selectWord = regexp.MustCompile(`(?i)retry.?if|^if|handle|classif|predicate|abort`)

// selectiveCall reports whether a call of a library is given an option that
// says what is tried again: retry.RetryIf(...).
// Any such option in the calling function counts, since options are often kept
// in a variable.
func selectiveCall(c *ssa.Call) bool {
	for o := range dataflow.Instrs[*ssa.Call](c.Parent()) {
		if dataflow.CalleePkg(o.Common()) == dataflow.CalleePkg(c.Common()) && selectWord.MatchString(dataflow.CalleeName(o.Common())) {
			return true
		}
	}
	return false
}
