// Package bound finds what ends a loop that keeps failing: a counter of
// attempts and its limit, a deadline, a context.
package bound

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
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
	Stop     bool // what others close or set to end the loop
}

// reader reads the bound of one loop, branch by branch.
// It is used once, by Of.
type reader struct {
	*fact.Scope
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
func Of(f *fact.Scope, l *dataflow.Loop, ops []*ssa.Call) Bound {
	r := &reader{Scope: f, l: l, ops: ops}
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
// not, and is noted as no more than a context. One that never ends is no limit.
func (r *reader) contextBound(v ssa.Value) {
	switch r.origin(r.Scope, v, 0) {
	case timed:
		r.b.Context, r.b.Deadline = true, true
	case open:
		r.b.Context = true
	}
}

// A context's end is known by where it was made.
type end int

const (
	never end = iota // context.Background and the like
	open             // as its maker decides
	timed            // with a timeout, around the loop
)

// origin follows a context through the calls that wrap it, and to the callers of
// the function when the package has all of them. The walk takes at most eight
// steps in a function, and goes up twice; a context from further away counts as
// the caller's.
func (r *reader) origin(s *fact.Scope, v ssa.Value, depth int) end {
	for range 8 {
		switch x := v.(type) {
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.Call:
			switch dataflow.CalleeName(x.Common()) {
			case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
				// A timeout made inside the loop bounds one attempt only.
				if s.Fn != r.Fn || r.Innermost[x.Block()] == nil {
					return timed
				}
				v = x.Common().Args[0]
			// These add no end in time; the context that they wrap may have one.
			case "WithCancel", "WithValue", "WithCancelCause", "WithContext", "WithoutCancel":
				if len(x.Common().Args) == 0 {
					return open
				}
				v = x.Common().Args[0]
			case "Background", "TODO":
				return never
			default:
				return open
			}
		case *ssa.UnOp:
			st := s.StoresTo(x.X)
			if len(st) == 0 {
				return open
			}
			v = st[0].Val
		case *ssa.Parameter:
			return r.passed(s, x, depth)
		default:
			return open
		}
	}
	return open
}

// passed is the end of a context that the callers of a function pass: the timeout
// that all of them set.
func (r *reader) passed(s *fact.Scope, p *ssa.Parameter, depth int) end {
	calls, all := s.Known.Callers(s.Fn)
	i := slices.Index(s.Fn.Params, p)
	if !all || len(calls) == 0 || depth > 1 || i < 0 {
		return open
	}
	for _, c := range calls {
		if i >= len(c.Args) || c.Args[i].Parent() == nil || r.origin(s.Known.Scope(c.Args[i].Parent()), c.Args[i], depth+1) != timed {
			return open
		}
	}
	return timed
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
		if c, ok := st.Chan.(*ssa.Call); ok && dataflow.CalleeName(c.Common()) == "Done" && c.Common().IsInvoke() {
			r.contextBound(c.Common().Value)
			continue
		}
		if dataflow.CaseStays(s, n, r.l) {
			continue
		}
		if dataflow.IsTimeChan(st.Chan.Type()) {
			r.b.Deadline = true
		} else {
			r.b.Stop = true
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
	r.b.Stop = r.b.Stop || stopped(v)
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
		r.asked(v, 0)
	case *ssa.BinOp:
		// A helper that waits may refuse by its error.
		if dataflow.IsNil(v.Y) && dataflow.IsError(v.X.Type()) {
			for _, c := range r.Origins(v.X, r.l) {
				if !slices.Contains(r.ops, c) {
					r.asked(c, 0)
				}
			}
			return
		}
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
