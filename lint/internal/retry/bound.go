package retry

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Bound says what ends a retry beside a success.
type Bound struct {
	Counter  bool  // it counts its attempts
	Known    bool  // up to a constant
	Limit    int64 // attempts, where Known
	Deadline bool  // a clock
	Context  bool  // the context of its caller
	Stop     bool  // a channel or a flag that others set
}

// bound reads the exits of a loop, or the parameters of a recursion.
func (p *Package) bound(r *Retry) (b Bound) {
	for _, blk := range r.Fn.Blocks {
		if r.Loop != nil && !r.Loop.Blocks[blk] {
			continue
		}
		for _, in := range blk.Instrs {
			switch in := in.(type) {
			case *ssa.If:
				if r.Loop == nil || !r.Loop.Returns(blk.Succs[0]) || !r.Loop.Returns(blk.Succs[1]) {
					b.exit(r, in.Cond, 0)
				}
			case *ssa.Select:
				for n, st := range in.States {
					switch {
					case st.Dir != types.RecvOnly:
					case isDone(st.Chan):
						b.Context = true
					case !isClock(st.Chan):
						b.Stop = true
					case r.Loop != nil && !r.Loop.CaseStays(in, n):
						b.Deadline = true
					}
				}
			case *ssa.Call:
				for _, a := range in.Common().Args {
					b.Context = b.Context || isContext(a.Type()) && outlives(a, r.Loop)
				}
			}
		}
	}
	b.Deadline = b.Deadline || b.Context && timed(r.Fn, r.Loop)
	return b
}

// exit reads a condition. Those that leave the loop limit it; in a recursion any
// does.
func (b *Bound) exit(r *Retry, cond ssa.Value, depth int) {
	if depth > 4 {
		return
	}
	switch v := cond.(type) {
	case *ssa.UnOp:
		if v.Op == token.NOT {
			b.exit(r, v.X, depth+1)
		}
	case *ssa.Phi:
		for _, e := range v.Edges {
			b.exit(r, e, depth+1)
		}
	case *ssa.Call:
		if n := eval.CalleeName(v.Common()); eval.CalleePkg(v.Common()) == "time" && (n == "After" || n == "Before") {
			b.Deadline = true
		} else if !slices.Contains(r.Ops, v) && !asksFailure(v) {
			b.Stop = true
		}
	case *ssa.BinOp:
		if c, ok := v.X.(*ssa.Call); ok && eval.IsError(v.X.Type()) && !slices.Contains(r.Ops, c) && v.Op == token.NEQ {
			b.Stop = true // a helper refuses
		}
		if timely(v.X) || timely(v.Y) {
			b.Deadline = true
			return
		}
		if limit, at := counts(r, v.X, v.Y, v.Op); at {
			b.Counter = true
			if limit > 0 && (!b.Known || limit < b.Limit) {
				b.Known, b.Limit = true, limit
			}
		} else if limit, at := counts(r, v.Y, v.X, flip(v.Op)); at {
			b.Counter = true
			if limit > 0 && (!b.Known || limit < b.Limit) {
				b.Known, b.Limit = true, limit
			}
		}
	}
}

func isInt(t types.Type) bool {
	return eval.Is(t, types.IsInteger) && !eval.IsDuration(t)
}

// timely reports whether a value is how much time has passed, or is left.
func timely(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	if !ok {
		if b, ok := v.(*ssa.BinOp); ok {
			return timely(b.X) || timely(b.Y)
		}
		return false
	}
	switch n := eval.CalleeName(c.Common()); eval.CalleePkg(c.Common()) {
	case "time":
		return n == "Since" || n == "Until" || n == "Sub"
	}
	return false
}

func isContext(t types.Type) bool { return eval.IsNamed(t, "context", "Context") }

// outlives reports whether a context may end, and is not that of one attempt: it was
// made outside of the loop.
func outlives(v ssa.Value, l *eval.Loop) bool {
	for range 6 {
		if x, ok := v.(*ssa.Extract); ok {
			v = x.Tuple
		}
		c, ok := v.(*ssa.Call)
		if !ok {
			return true
		}
		switch name := eval.CalleeName(c.Common()); {
		case name == "Background" || name == "TODO":
			return false
		case eval.CalleePkg(c.Common()) != "context" || l == nil || !l.Contains(c) || len(c.Common().Args) == 0:
			return true
		}
		v = c.Common().Args[0]
	}
	return true
}

// asksFailure reports whether a call is asked about an error or a response.
func asksFailure(c *ssa.Call) bool {
	return slices.ContainsFunc(c.Common().Args, func(a ssa.Value) bool { return eval.IsError(a.Type()) || eval.IsResponse(a.Type()) })
}

// timed reports whether a function sets a time for what it does, outside of the loop.
func timed(fn *ssa.Function, l *eval.Loop) bool {
	for c := range Calls(fn) {
		switch eval.CalleeName(c.Common()) {
		case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
			if eval.CalleePkg(c.Common()) == "context" && (l == nil || !l.Contains(c)) {
				return true
			}
		}
	}
	return false
}

func isDone(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	return ok && eval.CalleeName(c.Common()) == "Done"
}

// isClock reports whether a channel is one of a clock.
func isClock(v ssa.Value) bool {
	ch, ok := v.Type().Underlying().(*types.Chan)
	if !ok {
		return false
	}
	n, ok := types.Unalias(ch.Elem()).(*types.Named)
	return ok && n.Obj().Name() == "Time"
}
