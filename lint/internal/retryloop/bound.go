package retryloop

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Bound says what ends a region that keeps failing.
type Bound struct {
	Counter  bool  // a counter of attempts
	Limit    int64 // how many attempts the counter allows, when Known
	Known    bool
	Deadline bool // a limit in time: a deadline, a context with a timeout
	Context  bool // the caller's context, which may never end
}

// boundReader reads the bound of one loop.
type boundReader struct {
	*Func
	l   *Loop
	ops []*ssa.Call
	at  *ssa.BasicBlock // of the branch that is read
	b   Bound
}

// bound looks at every branch of l that can leave it.
func boundOf(f *Func, l *Loop, ops []*ssa.Call) Bound {
	r := &boundReader{Func: f, l: l, ops: ops}
	for _, blk := range f.fn.Blocks {
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
		i := ifOf(blk)
		if i == nil {
			continue
		}
		leaves := false
		for _, s := range blk.Succs {
			if _, back := l.walk(s, nil); !back {
				leaves = true
			}
		}
		if leaves {
			r.at = blk
			r.exitBound(i.Cond, 0)
		}
	}
	return r.b
}

// callBound sees contexts that are handed to waits and operations: their end
// ends the loop too.
func (r *boundReader) callBound(c *ssa.Call) {
	for _, a := range c.Common().Args {
		if IsContext(a.Type()) {
			r.contextBound(a)
		}
	}
	if c.Common().IsInvoke() && IsContext(c.Common().Value.Type()) && CalleeName(c.Common()) != "Value" {
		r.contextBound(c.Common().Value)
	}
}

func (r *boundReader) contextBound(v ssa.Value) {
	r.b.Context = true
	for range 8 {
		switch x := v.(type) {
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.Call:
			switch CalleeName(x.Common()) {
			case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
				// A timeout made inside the loop bounds one attempt only.
				if r.innermost[x.Block()] == nil {
					r.b.Deadline = true
				}
				return
			case "WithCancel", "WithValue", "WithCancelCause":
				v = x.Common().Args[0]
			default:
				return
			}
		case *ssa.UnOp:
			st := r.storesTo(x.X)
			if len(st) == 0 {
				return
			}
			v = st[0].Val
		default:
			return
		}
	}
}

// selectBound sees timers made before the loop and ctx.Done().
func (r *boundReader) selectBound(s *ssa.Select) {
	for n, st := range s.States {
		if st.Dir != types.RecvOnly {
			continue
		}
		if isTimeChan(st.Chan.Type()) && !caseStays(s, n, r.l) {
			r.b.Deadline = true
		}
		if c, ok := st.Chan.(*ssa.Call); ok && CalleeName(c.Common()) == "Done" && c.Common().IsInvoke() {
			r.contextBound(c.Common().Value)
		}
	}
}

// exitBound reads the condition of an exit.
func (r *boundReader) exitBound(v ssa.Value, depth int) {
	if depth > 6 {
		return
	}
	switch v := v.(type) {
	case *ssa.UnOp:
		r.exitBound(v.X, depth+1)
	case *ssa.Phi:
		for _, e := range v.Edges {
			r.exitBound(e, depth+1)
		}
	case *ssa.Call:
		switch name := CalleeName(v.Common()); name {
		case "After", "Before":
			r.b.Deadline = r.b.Deadline || CalleePkg(v.Common()) == "time"
		}
	case *ssa.BinOp:
		if timely(v.X, 0) || timely(v.Y, 0) {
			r.b.Deadline = true
			return
		}
		if counter(r.Func, v.X, r.l, 0) {
			r.limit(v.X, v.Y, v.Op)
		} else if counter(r.Func, v.Y, r.l, 0) {
			r.limit(v.Y, v.X, flip(v.Op))
		}
	}
}

// timely reports whether v measures elapsed time.
func timely(v ssa.Value, depth int) bool {
	if depth > 5 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Call:
		n := CalleeName(v.Common())
		if CalleePkg(v.Common()) == "time" && (n == "Since" || n == "Until" || n == "Sub" || n == "Now" || n == "Unix") {
			return true
		}
		for _, a := range v.Common().Args {
			if timely(a, depth+1) {
				return true
			}
		}
	case *ssa.BinOp:
		return timely(v.X, depth+1) || timely(v.Y, depth+1)
	case *ssa.Convert:
		return timely(v.X, depth+1)
	case *ssa.Extract:
		return timely(v.Tuple, depth+1)
	}
	return false
}

// counter reports whether v is an integer that l steps by a constant.
func counter(f *Func, v ssa.Value, l *Loop, depth int) bool {
	b, ok := v.Type().Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || isDuration(v.Type()) || depth > 4 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Phi:
		if !l.contains(v) {
			return false
		}
		for _, e := range v.Edges {
			if steps(e, v, 0) {
				return true
			}
		}
	case *ssa.BinOp:
		if _, isConst := v.Y.(*ssa.Const); isConst && (v.Op == token.ADD || v.Op == token.SUB) {
			return counter(f, v.X, l, depth+1)
		}
	case *ssa.Convert:
		return counter(f, v.X, l, depth+1)
	case *ssa.UnOp:
		for _, s := range f.storesTo(v.X) {
			if l.contains(s) {
				if add, ok := s.Val.(*ssa.BinOp); ok && (add.Op == token.ADD || add.Op == token.SUB) {
					return true
				}
			}
		}
	}
	return false
}

// steps reports whether e is p plus or minus a constant, through the merges of
// the loop's branches.
func steps(e ssa.Value, p *ssa.Phi, depth int) bool {
	if depth > 5 {
		return false
	}
	switch e := e.(type) {
	case *ssa.BinOp:
		if e.Op != token.ADD && e.Op != token.SUB {
			return false
		}
		return e.X == p || e.Y == p || steps(e.X, p, depth+1)
	case *ssa.Phi:
		if e == p {
			return depth > 0
		}
		for _, x := range e.Edges {
			if x != p && steps(x, p, depth+1) {
				return true
			}
		}
	}
	return false
}

// limit reads how many attempts a comparison of a counter allows.
func (r *boundReader) limit(counter, max ssa.Value, op token.Token) {
	r.b.Counter = true
	c, ok := max.(*ssa.Const)
	if !ok {
		return
	}
	n, isInt := constInt(c)
	if !isInt {
		return
	}
	start := counterStart(counter)
	attempts := n - start
	switch {
	case start > n: // counts down
		attempts = start - n
		if op == token.GEQ || op == token.LSS {
			attempts++
		}
	case op == token.LEQ || op == token.GTR:
		attempts++
	}
	for _, c := range r.ops { // tested after the operation: one attempt more
		if c.Block() == r.at || c.Block().Dominates(r.at) {
			attempts++
			break
		}
	}
	if attempts > 0 && (!r.b.Known || attempts < r.b.Limit) {
		r.b.Limit, r.b.Known = attempts, true
	}
}

func counterStart(v ssa.Value) int64 {
	switch v := v.(type) {
	case *ssa.Phi:
		for _, e := range v.Edges {
			if c, ok := e.(*ssa.Const); ok {
				if n, ok := constInt(c); ok {
					return n
				}
			}
		}
	case *ssa.BinOp:
		n := counterStart(v.X)
		if c, ok := v.Y.(*ssa.Const); ok && v.Op == token.ADD {
			if k, ok := constInt(c); ok {
				return n + k
			}
		}
		return n
	case *ssa.Convert:
		return counterStart(v.X)
	}
	return 0
}
