package retryloop

import "golang.org/x/tools/go/ssa"

// recursion finds a function that, after a failure and a wait, calls itself
// with the same operation.
func (f *finder) recursion() *Region {
	var self *ssa.Call
	for _, b := range f.fn.Blocks {
		for _, in := range b.Instrs {
			if c, ok := in.(*ssa.Call); ok && c.Common().StaticCallee() == f.fn && f.innermost[b] == nil {
				self = c
			}
		}
	}
	if self == nil {
		return nil
	}
	all := &Loop{Blocks: map[*ssa.BasicBlock]bool{}}
	for _, b := range f.fn.Blocks {
		all.Blocks[b] = true
	}
	r := &Region{Fn: f.fn, f: f, Pure: true, Pos: self.Pos()}
	for _, t := range f.tests(all) {
		if isOp(self, t.Ops) || !t.fail().to().Dominates(self.Block()) || len(t.fail().to().Preds) > 1 {
			continue
		}
		r.Tests = append(r.Tests, t)
		r.Ops = appendNew(r.Ops, t.Ops)
	}
	if len(r.Tests) == 0 {
		return nil
	}
	for _, b := range f.fn.Blocks {
		if !b.Dominates(self.Block()) || f.innermost[b] != nil {
			continue
		}
		for _, in := range b.Instrs {
			if w := waitOf(f.Scope, in, nil); w != nil && in != ssa.Instruction(self) && (b != self.Block() || before(in, self)) {
				r.Waits = append(r.Waits, w)
			}
		}
	}
	if len(r.Waits) == 0 {
		return nil
	}
	f.describe(r)
	r.Bound.Counter = countsDown(self)
	if r.Delay.Class == Fixed && r.Delay.Param && f.passesVarying(self) {
		r.Delay.Class = Growing
	}
	return r
}

// countsDown reports whether the recursive call passes a parameter plus or
// minus a constant.
func countsDown(self *ssa.Call) bool {
	for _, a := range self.Common().Args {
		b, ok := a.(*ssa.BinOp)
		if !ok {
			continue
		}
		if _, isParam := b.X.(*ssa.Parameter); isParam {
			return true
		}
	}
	return false
}

// passesVarying reports whether the recursive call changes a duration
// parameter: the wait grows from call to call.
func (f *finder) passesVarying(self *ssa.Call) bool {
	for i, a := range self.Common().Args {
		if i < len(f.fn.Params) && isDuration(f.fn.Params[i].Type()) && a != ssa.Value(f.fn.Params[i]) {
			return true
		}
	}
	for _, w := range self.Common().Args {
		if b, ok := w.(*ssa.BinOp); ok {
			if _, isParam := b.X.(*ssa.Parameter); isParam && waitUses(b.X) {
				return true
			}
		}
	}
	return false
}

func waitUses(p ssa.Value) bool {
	if p.Referrers() == nil {
		return false
	}
	for _, ref := range *p.Referrers() {
		if c, ok := ref.(*ssa.Convert); ok && isDuration(c.Type()) {
			return true
		}
	}
	return false
}
