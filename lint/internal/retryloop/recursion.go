package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
)

// recursion finds a function that, after a failure and a wait, comes back to
// itself with the same operation: it calls itself, or a function that does, or
// has a timer call it. Its whole body stands for the loop. Without a wait it is
// taken for a descent, as of a tree, in which a failure is no reason to go on.
// Code that reconnects by calling itself has no loop, and hides its lack of a
// limit.
// Of several ways back, the one whose operation goes farthest counts, and of
// those the last.
func (f *finder) recursion() (best *Region) {
	for _, way := range slices.Backward(f.waysBack(f.Fn, 0)) {
		if r := f.recursionBy(way); r != nil && (best == nil || r.Boundary > best.Boundary) {
			best = r
		}
	}
	return best
}

// recursionBy judges one way back; nil when it is no retry.
func (f *finder) recursionBy(way []step) *Region {
	self := way[0].call
	all := &dataflow.Loop{Blocks: map[*ssa.BasicBlock]bool{}}
	for _, b := range f.Fn.Blocks {
		all.Blocks[b] = true
	}
	r := &Region{Fn: f.Fn, f: f, Pure: true, Pos: self.Pos(), self: self}
	tests := f.tests(all)
	for _, t := range tests {
		// The call of itself must be on the failing side alone. That its own
		// result is tested is no retry of another operation.
		if slices.Contains(t.Ops, self) || !t.fail().To().Dominates(self.Block()) || !onlyFailing(t.fail().To(), tests) {
			continue
		}
		r.Tests = append(r.Tests, t)
		r.Ops = appendNew(r.Ops, t.Ops)
	}
	if len(r.Tests) == 0 {
		return nil
	}
	turn := f.waitsOn(way, r)
	if len(r.Waits) == 0 {
		return nil
	}
	r.Delay = turn.Delay(r.Ops)
	f.describe(r)
	// A loop counts in its branches; a recursion by what it passes on.
	r.Bound.Counter = slices.ContainsFunc(way, func(s step) bool { return countsDown(s.call) })
	return r
}

// onlyFailing reports whether failures alone lead to a block: err != nil || status
// >= 500 has two tests and one block behind them.
func onlyFailing(b *ssa.BasicBlock, tests []*Test) bool {
	edges := 0
	for _, t := range tests {
		if t.fail().To() == b {
			edges++
		}
	}
	return edges >= len(b.Preds)
}

// step is one call on the way from a function back to itself.
type step struct {
	call *ssa.Call
	to   *ssa.Function
	args []ssa.Value // that to is given; nil when they are not seen
	wait *delay.Wait // of a timer that makes the call
}

// waysBack returns the calls that lead from a function of the package back to
// f.Fn, outside of loops, in each way that there is. One function may lie between:
// the helper that waits, or the literal that a timer is given.
func (f *finder) waysBack(from *ssa.Function, depth int) (ways [][]step) {
	scope := f.Known.Scope(from)
	for c := range dataflow.Instrs[*ssa.Call](from) {
		if scope.Innermost[c.Block()] != nil {
			continue
		}
		s := f.stepOf(c)
		switch {
		case s.to == f.Fn:
			ways = append(ways, []step{s})
		case s.to != nil && s.to != from && depth == 0:
			for _, more := range f.waysBack(s.to, depth+1) {
				ways = append(ways, append([]step{s}, more...))
			}
		}
	}
	return ways
}

// stepOf returns where a call leads, in the package: to the function that it
// calls, to the literal in the variable that it calls, or to what a timer is to
// call later. The wait of the timer is one of the call itself.
func (f *finder) stepOf(c *ssa.Call) step {
	if dataflow.Calls(c, "time", "AfterFunc") {
		fn, args := dataflow.FuncValue(c.Common().Args[1])
		if fn == nil || len(fn.Blocks) == 0 || !f.Known.Own(fn) {
			return step{}
		}
		if fn.Parent() != nil {
			args = nil // what a literal captures are no parameters
		}
		return step{call: c, to: fn, args: args, wait: &delay.Wait{Instr: c, D: c.Common().Args[0], After: c}}
	}
	if fn := f.Known.Body(c.Common()); fn != nil {
		return step{call: c, to: fn, args: c.Common().Args}
	}
	if fn := dataflow.OwnLiteral(c); fn != nil {
		return step{call: c, to: fn, args: c.Common().Args}
	}
	return step{}
}

// waitsOn gathers the waits on the way back, and returns the turn that they
// belong to.
func (f *finder) waitsOn(way []step, r *Region) *delay.Turn {
	turn := &delay.Turn{Back: way[len(way)-1].args}
	fn, args := f.Fn, []ssa.Value(nil)
	for i, s := range way {
		scope := f.Known.Scope(fn)
		link := delay.Link{Scope: scope, Args: args}
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			if in == ssa.Instruction(s.call) || scope.Innermost[in.Block()] != nil || !f.onTheWay(in, s.call, i, r) {
				continue
			}
			if w := delay.WaitOf(scope, in, nil); w != nil {
				link.Waits = append(link.Waits, w)
			}
		}
		if s.wait != nil {
			link.Waits = append(link.Waits, s.wait)
		}
		r.Waits = append(r.Waits, link.Waits...)
		turn.Links = append(turn.Links, link)
		fn, args = s.to, s.args
	}
	return turn
}

// onTheWay reports whether in runs before the call that leads back: always, or
// on a way that only a failure takes, or in the helper between.
func (f *finder) onTheWay(in ssa.Instruction, call *ssa.Call, link int, r *Region) bool {
	if dataflow.Before(in, call) {
		return true
	}
	if in.Block() == call.Block() || !dataflow.Reaches(in.Block(), call.Block()) {
		return false
	}
	return link > 0 || slices.ContainsFunc(r.Tests, func(t *Test) bool { return t.fail().To().Dominates(in.Block()) })
}

// countsDown reports whether a call passes a parameter plus or minus a constant.
// Such a call limits the number of attempts.
func countsDown(self *ssa.Call) bool {
	return slices.ContainsFunc(self.Common().Args, func(a ssa.Value) bool {
		b, ok := a.(*ssa.BinOp)
		if !ok || dataflow.IsDuration(a.Type()) {
			return false
		}
		_, isParam := b.X.(*ssa.Parameter)
		return isParam
	})
}
