package bound

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// CountsIn reports whether a condition compares a counter of l, on either side.
// The rule about a useless last wait asks where a loop looks at its counter.
func CountsIn(f *dataflow.Func, v ssa.Value, l *dataflow.Loop) bool {
	b, ok := v.(*ssa.BinOp)
	return ok && (counter(f, b.X, l, 0) || counter(f, b.Y, l, 0))
}

// counter reports whether v is an integer that l steps by a constant: a merged
// variable, or a cell or a field that is counted up by a store. A duration is an
// integer too, and doubling it is no count.
// A counter in a field need not begin anew for each call, but it still ends the
// loop. The depth ends the walk through conversions and sums.
func counter(f *dataflow.Func, v ssa.Value, l *dataflow.Loop, depth int) bool {
	b, ok := v.Type().Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 || dataflow.IsDuration(v.Type()) || depth > 4 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Phi:
		if !l.Contains(v) {
			return false
		}
		// One stepping edge is enough: the other ones hold the start.
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
		for _, s := range f.StoresTo(v.X) {
			if l.Contains(s) {
				if add, ok := s.Val.(*ssa.BinOp); ok && (add.Op == token.ADD || add.Op == token.SUB) {
					return true
				}
			}
		}
	}
	return false
}

// steps reports whether e is p plus or minus a constant, through the merges of
// the loop's branches: a counter that only some turns raise still counts.
// The step may have any size: a loop that counts by two is counted too.
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

// limit reads how many attempts a comparison of a counter allows. op is as it
// stands with the counter on its left. Off-by-one matters: FB1011 names the
// number, so that <= and a test behind the operation count one attempt more.
// The smallest of several limits holds.
// A limit that is a variable ends the loop as well, but its number stays
// unknown.
func (r *reader) limit(counter, max ssa.Value, op token.Token) {
	r.b.Counter = true
	c, ok := max.(*ssa.Const)
	if !ok {
		return
	}
	n, isInt := dataflow.ConstInt(c)
	if !isInt {
		return
	}
	start := counterStart(counter)
	// The loop runs from start up to n, or down to it.
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

// counterStart is the constant that a counter begins with, before the loop; 0
// when it is not known, which is what most counters begin with.
// A range over a slice begins at -1 in SSA and adds 1 before its test, so
// that the sum in the comparison counts.
func counterStart(v ssa.Value) int64 {
	switch v := v.(type) {
	case *ssa.Phi:
		for _, e := range v.Edges {
			if c, ok := e.(*ssa.Const); ok {
				if n, ok := dataflow.ConstInt(c); ok {
					return n
				}
			}
		}
	case *ssa.BinOp:
		n := counterStart(v.X)
		if c, ok := v.Y.(*ssa.Const); ok && v.Op == token.ADD {
			if k, ok := dataflow.ConstInt(c); ok {
				return n + k
			}
		}
		return n
	case *ssa.Convert:
		return counterStart(v.X)
	}
	return 0
}
