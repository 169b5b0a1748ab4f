package retryloop

import (
	"go/types"
	"iter"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/codeset"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// neverAgain reports whether every return of a callback ends the retries: it
// marks each of its failures as permanent.
func (p *finders) neverAgain(h *fact.Retrier, fn *ssa.Function) bool {
	returns := 0
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		// Without an error, only a helper that asks its callback in another way goes on.
		if v := errorResult(ret); v != nil && dataflow.IsNil(v) && (!slices.Contains(h.Ends, anyError) || p.ended(h, ret)) {
			continue
		}
		returns++
		if !p.ended(h, ret) {
			return false
		}
	}
	return returns > 0
}

// RetriedFailures returns the statuses for which the callback fn of
// the helper that c calls certainly fails, and is certainly called again. guessed
// says that a setting decides.
func (r *Result) RetriedFailures(c *ssa.Call, fn *ssa.Function) (fails codeset.Set, guessed bool) {
	h := r.helper(c.Common())
	return r.Judge.Failures(fn, func(ret *ssa.Return) bool {
		return r.ended(h, ret)
	})
}

// HelperWaits yields the calls of retry helpers of other modules whose waits are
// known, each with the class of the waits. A helper of the module itself is
// judged where it waits.
func (r *Result) HelperWaits() iter.Seq2[*ssa.Call, HelperWait] {
	return func(yield func(*ssa.Call, HelperWait) bool) {
		for c := range r.Calls() {
			if w, ok := r.helperWait(c); ok && !yield(c, w) {
				return
			}
		}
	}
}

// HelperWait says how a retry helper waits when it is called with certain
// arguments.
type HelperWait struct {
	Class fact.Class
	// Sure calls retry something that leaves the machine, through a helper that
	// says that it retries. Polls wait for a state.
	Sure, Polls bool
}

// helperWait judges one call; ok is false when it is none of a helper, or of one
// whose waits are not known.
func (r *Result) helperWait(c *ssa.Call) (w HelperWait, ok bool) {
	h := r.helper(c.Common())
	if h == nil || h.Delay == fact.Pluggable || h.Delay == fact.Immediate || !r.Known.Foreign(dataflow.CalleePkg(c.Common())) {
		return w, false
	}
	byDefault := h.Default
	w.Class = h.Delay
	// What the caller hands on may differ from call to call, as in a loop around it.
	if h.Every >= 0 {
		if h.Every >= len(c.Common().Args) {
			return w, false
		}
		given := delay.Classify(r.Known.Scope(c.Parent()), c.Common().Args[h.Every], nil, nil)
		w.Class, byDefault = given.Class, byDefault || given.Default
	}
	if byDefault && r.replacesWait(dataflow.CalleePkg(c.Common())) {
		return w, false
	}
	w.Sure = h.Spoken && !byDefault
	if fn := r.callback(c, h); fn != nil {
		sum := r.Known.Local(fn)
		w.Sure = w.Sure && (sum.Remote || !sum.Local)
		w.Polls = r.Polls(fn)
	}
	return w, true
}

// replacesWait reports whether the package sets a function of its own, or another
// of the library's, where a type of the library keeps the one that says how long to
// wait. It is found out once.
func (p *finders) replacesWait(pkg string) bool {
	found, ok := p.replaced[pkg]
	if !ok {
		found = slices.ContainsFunc(p.Known.Funcs(), func(fn *ssa.Function) bool { return setsWait(fn, pkg) })
		p.replaced[pkg] = found
	}
	return found
}

// setsWait reports whether a function stores such a function.
func setsWait(fn *ssa.Function, pkg string) bool {
	for st := range dataflow.Instrs[*ssa.Store](fn) {
		field := dataflow.FieldVar(st.Addr)
		if field == nil || field.Pkg() == nil || field.Pkg().Path() != pkg || dataflow.IsNil(st.Val) {
			continue
		}
		if sig, ok := field.Type().Underlying().(*types.Signature); ok && sig.Results().Len() > 0 && dataflow.IsDuration(sig.Results().At(0).Type()) {
			return true
		}
	}
	return false
}
