package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// recursion finds a function that, after a failure and a wait, calls itself with
// the same operation. Its whole body stands for the loop. Without a wait it is
// taken for a descent, as of a tree, in which a failure is no reason to go on.
// Code that reconnects by calling itself has no loop, and hides its lack of a
// limit.
func (f *finder) recursion() *Region {
	var self *ssa.Call
	for c := range dataflow.Instrs[*ssa.Call](f.Fn) {
		if c.Common().StaticCallee() == f.Fn && f.Innermost[c.Block()] == nil {
			self = c
		}
	}
	if self == nil {
		return nil
	}
	all := &dataflow.Loop{Blocks: map[*ssa.BasicBlock]bool{}}
	for _, b := range f.Fn.Blocks {
		all.Blocks[b] = true
	}
	r := &Region{Fn: f.Fn, f: f, Pure: true, Pos: self.Pos()}
	for _, t := range f.tests(all) {
		// The call of itself must be on the failing side alone. That its own
		// result is tested is no retry of another operation.
		if slices.Contains(t.Ops, self) || !t.fail().To().Dominates(self.Block()) || len(t.fail().To().Preds) > 1 {
			continue
		}
		r.Tests = append(r.Tests, t)
		r.Ops = appendNew(r.Ops, t.Ops)
	}
	if len(r.Tests) == 0 {
		return nil
	}
	for in := range dataflow.Instrs[ssa.Instruction](f.Fn) {
		if !in.Block().Dominates(self.Block()) || f.Innermost[in.Block()] != nil {
			continue
		}
		if w := delay.WaitOf(f.Scope, in, nil); w != nil && dataflow.Before(in, self) {
			r.Waits = append(r.Waits, w)
		}
	}
	if len(r.Waits) == 0 {
		return nil
	}
	f.describe(r)
	// A loop counts in its branches; a recursion by what it passes on.
	r.Bound.Counter = countsDown(self)
	if r.Delay.Class == fact.Fixed && r.Delay.Param && f.passesVarying(self) {
		r.Delay.Class = fact.Growing
	}
	return r
}

// countsDown reports whether the recursive call passes a parameter plus or
// minus a constant.
// Such a call limits the number of attempts.
func countsDown(self *ssa.Call) bool {
	return slices.ContainsFunc(self.Common().Args, func(a ssa.Value) bool { return stepped(a) != nil })
}

// stepped returns the parameter that v is computed from by one operator, or nil.
func stepped(v ssa.Value) *ssa.Parameter {
	if b, ok := v.(*ssa.BinOp); ok {
		p, _ := b.X.(*ssa.Parameter)
		return p
	}
	return nil
}

// passesVarying reports whether the recursive call changes a duration
// parameter: the wait grows from call to call.
// Such a wait is not the same at each depth, so it must not count as fixed.
func (f *finder) passesVarying(self *ssa.Call) bool {
	for i, a := range self.Common().Args {
		if i < len(f.Fn.Params) && dataflow.IsDuration(f.Fn.Params[i].Type()) && a != ssa.Value(f.Fn.Params[i]) {
			return true
		}
		if p := stepped(a); p != nil && waitUses(p) {
			return true
		}
	}
	return false
}

// waitUses reports whether p is converted to a duration.
// A number that becomes a duration decides how long the wait is.
func waitUses(p *ssa.Parameter) bool {
	for c := range dataflow.Refs[*ssa.Convert](p) {
		if dataflow.IsDuration(c.Type()) {
			return true
		}
	}
	return false
}
