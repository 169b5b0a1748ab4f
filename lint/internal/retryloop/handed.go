package retryloop

import (
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

// handedOn returns the retries of a function that are made by handing another one
// to a function which calls it until it is done.
func (f *finder) handedOn() (found []*Region) {
	for c := range dataflow.Instrs[*ssa.Call](f.Fn) {
		h := f.pkg.contract(c.Common(), fact.UntilDone)
		if h == nil || h.Delay == fact.Immediate {
			continue
		}
		lit := f.pkg.callback(c, h)
		if lit == nil || !f.Known.Own(lit) || !f.pkg.repeatsFailure(lit) {
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
		r.Delay = delay.Delay{Class: h.Delay, Default: h.Default}
		if h.Every >= 0 && h.Every < len(c.Common().Args) {
			r.Delay = delay.Classify(f.Scope, c.Common().Args[h.Every], f.Innermost[c.Block()], nil)
		}
		g.describe(r)
		found = append(found, r)
	}
	return found
}

// repeatsFailure reports whether a function says by its first result, a bool,
// that it is not done when a call of it has failed, without an error, and that it
// is done otherwise. One that looks at a state after a success waits for that
// state, and tolerates failures on the way; that the state is the status of a
// response makes it a failure of its own.
func (p *finders) repeatsFailure(fn *ssa.Function) bool {
	res := fn.Signature.Results()
	if res.Len() == 0 || !dataflow.IsBool(res.At(0).Type()) {
		return false
	}
	whenFailed, plain, ok := afterFailure(p.Known.Scope(fn), 0)
	return ok && whenFailed == againWord.MatchString(res.At(0).Name()) && (plain || p.Judge.LooksAtStatus(fn))
}
