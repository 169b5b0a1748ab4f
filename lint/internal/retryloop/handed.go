package retryloop

import (
	"go/types"
	"regexp"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// A function that calls another one until it says that it is done neither polls
// nor retries by itself: that is up to what it is given. It becomes a retry where
// it is handed a function that says "not done" after a failure, and keeps the
// error to itself.

// againWord marks bools by which a function asks to be called again.
var againWord = regexp.MustCompile(`(?i)retry|again|more|continue`)

// askedTest recognizes the bool of a function value that is asked whether it is
// done: done, err := accept(). A bool that is named for it asks to be called
// again. Its other results say nothing of the bool.
func (f *finder) askedTest(v ssa.Value, t *Test, l *dataflow.Loop) *Test {
	c := f.askedCall(v)
	if c == nil || !l.Contains(c) {
		return nil
	}
	if res := c.Common().Signature().Results(); !againWord.MatchString(res.At(askedIndex(v)).Name()) {
		t.Fail = 1 - t.Fail
	}
	t.Ops, t.Bool, t.Asked = []*ssa.Call{c}, true, true
	return t
}

// askedCall returns the call of a function that was handed over, as a parameter
// or in a field of one, whose bool v is; nil for any other value.
func (f *finder) askedCall(v ssa.Value) *ssa.Call {
	if e, ok := v.(*ssa.Extract); ok {
		v = e.Tuple
	}
	c, ok := v.(*ssa.Call)
	if !ok || c.Common().IsInvoke() || !f.handed(c.Common().Value) {
		return nil
	}
	return c
}

// askedIndex is the result that v is.
func askedIndex(v ssa.Value) int {
	if e, ok := v.(*ssa.Extract); ok {
		return e.Index
	}
	return 0
}

// noteUntil notes that a function calls what it is given until that is done, and
// how it waits meanwhile.
func noteUntil(s *fact.Scope, sum *fact.Summary, r *Region) {
	if r.Loop == nil || r.Delay.Class == fact.Immediate || len(r.Waits) == 0 {
		return
	}
	sum.Until = &fact.Wait{Param: -1, Class: r.Delay.Class, Default: r.Delay.Default}
	if len(r.Waits) == 1 && r.Delay.Class == fact.Fixed && r.Delay.Param {
		sum.Until = delay.OfFunc(s, r.Waits[0])
	}
}

// handedOn returns the retries of a function that are made by handing another one
// to a function which calls it until it is done.
func (f *finder) handedOn() (found []*Region) {
	for c := range dataflow.Instrs[*ssa.Call](f.Fn) {
		sum := f.Known.Of(c.Common())
		if sum == nil || sum.Until == nil || sum.Retrier != nil {
			continue
		}
		for _, a := range c.Common().Args {
			lit := f.literal(a)
			if lit == nil || !repeatsFailure(f.Known.Scope(lit)) {
				continue
			}
			g := f.pkg.of(lit)
			all := &dataflow.Loop{Blocks: map[*ssa.BasicBlock]bool{}}
			for _, b := range lit.Blocks {
				all.Blocks[b] = true
			}
			r := &Region{Fn: lit, f: g, Pure: true, Pos: c.Pos()}
			for _, t := range g.tests(all) {
				r.Tests = append(r.Tests, t)
				r.Ops = appendNew(r.Ops, t.Ops)
			}
			if len(r.Ops) == 0 {
				continue
			}
			r.Delay = delay.Delay{Class: sum.Until.Class, Default: sum.Until.Default}
			if p := sum.Until.Param; p >= 0 && p < len(c.Common().Args) {
				r.Delay = delay.Classify(f.Scope, c.Common().Args[p], f.Innermost[c.Block()], nil)
			}
			g.describe(r)
			found = append(found, r)
		}
	}
	return found
}

// literal returns the function that an argument is, or that a struct which is
// passed holds in a field; nil when it cannot be seen.
func (f *finder) literal(a ssa.Value) *ssa.Function {
	if ct, ok := a.(*ssa.ChangeType); ok {
		a = ct.X
	}
	fn, _ := handedFunction(a)
	if fn == nil {
		if load, ok := a.(*ssa.UnOp); ok {
			for fa := range dataflow.Refs[*ssa.FieldAddr](load.X) {
				for st := range dataflow.Refs[*ssa.Store](fa) {
					if ct, ok := st.Val.(*ssa.ChangeType); ok {
						fn, _ = handedFunction(ct.X)
					} else if got, _ := handedFunction(st.Val); got != nil {
						fn = got
					}
				}
			}
		}
	}
	if fn == nil || len(fn.Blocks) == 0 || !f.Known.Own(fn) {
		return nil
	}
	return fn
}

// repeatsFailure reports whether a function says by its first result, a bool,
// that it is not done when a call of it has failed, without an error.
func repeatsFailure(s *fact.Scope) bool {
	res := s.Fn.Signature.Results()
	if res.Len() == 0 || !types.Identical(res.At(0).Type().Underlying(), types.Typ[types.Bool]) {
		return false
	}
	whenFailed, ok := afterFailure(s, 0)
	return ok && whenFailed == againWord.MatchString(res.At(0).Name())
}
