// Package bound finds what ends a loop that keeps failing: a counter of
// attempts and its limit, a deadline, a context.
package bound

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// Bound says what ends a region that keeps failing. The zero value is a loop
// that nothing ends. Several may hold; each is a limit of its own, and the rules
// say which of them is enough.
// It errs towards a limit: a finding that says "unbounded" of a bounded loop
// costs trust.
type Bound struct {
	Counter  bool  // a counter of attempts
	Limit    int64 // how many attempts the counter allows, when Known
	Known    bool
	Deadline bool // a limit in time: a deadline, a context with a timeout
	Context  bool // the caller's context, which may never end
}

// reader reads the bound of one loop, branch by branch.
// It is used once, by Of.
type reader struct {
	*dataflow.Func
	l   *dataflow.Loop
	ops []*ssa.Call
	at  *ssa.BasicBlock // of the branch that is read
	b   Bound
}

// Of looks at every branch of l that can leave it, and at the contexts that its
// calls are given. ops are the operations that are attempted: a counter that is
// tested behind them allows one attempt more.
// A region without a loop, such as a recursion, has no bound that could be read
// here.
func Of(f *dataflow.Func, l *dataflow.Loop, ops []*ssa.Call) Bound {
	r := &reader{Func: f, l: l, ops: ops}
	for _, blk := range f.Fn.Blocks {
		if !l.Blocks[blk] {
			continue
		}
		for _, in := range blk.Instrs {
			switch in := in.(type) {
			case *ssa.Select:
				r.selectBound(in)
			case *ssa.Call:
				r.callBound(in)
			}
		}
		// A branch that cannot leave the loop says nothing about its end.
		leaves := func(s *ssa.BasicBlock) bool {
			_, back := l.Walk(s, nil)
			return !back
		}
		if i := dataflow.IfOf(blk); i != nil && slices.ContainsFunc(blk.Succs, leaves) {
			r.at = blk
			r.exitBound(i.Cond, 0)
		}
	}
	return r.b
}

// callBound sees contexts that are handed to waits and operations: their end
// ends the loop too, by the error that they yield. A look at the context's
// values is no limit.
// Context.Value is such a look.
func (r *reader) callBound(c *ssa.Call) {
	for _, a := range c.Common().Args {
		if dataflow.IsContext(a.Type()) {
			r.contextBound(a)
		}
	}
	if c.Common().IsInvoke() && dataflow.IsContext(c.Common().Value.Type()) && dataflow.CalleeName(c.Common()) != "Value" {
		r.contextBound(c.Common().Value)
	}
}

// contextBound follows a context to where it was made. One with a timeout around
// the loop limits the whole; one that the caller passed may have a deadline or
// not, and is noted as no more than a context.
// The walk takes at most eight steps; a context from further away counts as the
// caller's.
func (r *reader) contextBound(v ssa.Value) {
	r.b.Context = true
	for range 8 {
		switch x := v.(type) {
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.Call:
			switch dataflow.CalleeName(x.Common()) {
			case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
				// A timeout made inside the loop bounds one attempt only.
				if r.Innermost[x.Block()] == nil {
					r.b.Deadline = true
				}
				return
			// These add no end in time; the context that they wrap may have one.
			case "WithCancel", "WithValue", "WithCancelCause":
				v = x.Common().Args[0]
			default:
				return
			}
		case *ssa.UnOp:
			st := r.StoresTo(x.X)
			if len(st) == 0 {
				return
			}
			v = st[0].Val
		default:
			return
		}
	}
}

// selectBound sees timers made before the loop, whose case leaves it, and
// receives from ctx.Done().
// A timer whose case goes on with the loop is a wait, and belongs to package
// delay.
func (r *reader) selectBound(s *ssa.Select) {
	for n, st := range s.States {
		// A send is not a clock.
		if st.Dir != types.RecvOnly {
			continue
		}
		if dataflow.IsTimeChan(st.Chan.Type()) && !dataflow.CaseStays(s, n, r.l) {
			r.b.Deadline = true
		}
		if c, ok := st.Chan.(*ssa.Call); ok && dataflow.CalleeName(c.Common()) == "Done" && c.Common().IsInvoke() {
			r.contextBound(c.Common().Value)
		}
	}
}

// exitBound reads the condition of an exit: the parts of && and || too, which
// SSA merges in a phi.
// The depth is bounded because phis may form cycles. A condition of another
// kind, such as err == nil, limits nothing.
func (r *reader) exitBound(v ssa.Value, depth int) {
	if depth > 6 {
		return
	}
	switch v := v.(type) {
	case *ssa.UnOp:
		r.exitBound(v.X, depth+1)
	// Each part of the condition may end the loop by itself.
	case *ssa.Phi:
		for _, e := range v.Edges {
			r.exitBound(e, depth+1)
		}
	case *ssa.Call:
		if dataflow.Calls(v, "time", "After", "Before") {
			r.b.Deadline = true
		}
	case *ssa.BinOp:
		if dataflow.Timely(v.X, 0) || dataflow.Timely(v.Y, 0) {
			r.b.Deadline = true
			return
		}
		if counter(r.Func, v.X, r.l, 0) {
			r.limit(v.X, v.Y, v.Op)
		} else if counter(r.Func, v.Y, r.l, 0) {
			r.limit(v.Y, v.X, dataflow.Flip(v.Op))
		}
	}
}
