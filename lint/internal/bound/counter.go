package bound

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// CountsIn reports whether a condition compares a counter of l, on either side.
// The rule about a useless last wait asks where a loop looks at its counter.
func CountsIn(f *dataflow.Func, v ssa.Value, l *dataflow.Loop) bool {
	b, ok := v.(*ssa.BinOp)
	return ok && (counter(f, b.X, l, 0) || counter(f, b.Y, l, 0))
}

// Counts reports whether l counts its turns: it raises an integer by a constant on
// each way to the next one, whether or not the count ends it. Such a loop numbers
// its attempts, to choose a wait by the number or to tell it.
func Counts(l *dataflow.Loop) bool {
	return slices.ContainsFunc(l.Header.Instrs, func(in ssa.Instruction) bool {
		phi, ok := in.(*ssa.Phi)
		if !ok || !dataflow.IsInteger(phi.Type()) || dataflow.IsDuration(phi.Type()) {
			return false
		}
		for i, e := range phi.Edges {
			sum, ok := e.(*ssa.BinOp)
			if l.Blocks[l.Header.Preds[i]] && !(ok && sum.Op == token.ADD && sum.X == phi && dataflow.IsConst(sum.Y)) {
				return false
			}
		}
		return true
	})
}

// counter reports whether v is an integer that l steps by a constant: a merged
// variable, or a cell or a field that is counted up by a store. A duration is an
// integer too, and doubling it is no count.
// A counter in a field need not begin anew for each call, but it still ends the
// loop. The depth ends the walk through conversions and sums.
func counter(f *dataflow.Func, v ssa.Value, l *dataflow.Loop, depth int) bool {
	if !dataflow.IsInteger(v.Type()) || dataflow.IsDuration(v.Type()) || depth > 4 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Phi:
		if !l.Contains(v) {
			return false
		}
		// One stepping edge is enough: the other ones hold the start.
		return slices.ContainsFunc(v.Edges, func(e ssa.Value) bool { return steps(e, v, 0) })
	case *ssa.BinOp:
		return dataflow.IsConst(v.Y) && addsUp(v) && counter(f, v.X, l, depth+1)
	case *ssa.Convert:
		return counter(f, v.X, l, depth+1)
	case *ssa.UnOp:
		return slices.ContainsFunc(f.StoresTo(v.X), func(s *ssa.Store) bool {
			sum, ok := s.Val.(*ssa.BinOp)
			return ok && addsUp(sum) && l.Contains(s)
		})
	}
	return false
}

// addsUp reports whether b is a sum or a difference.
func addsUp(b *ssa.BinOp) bool { return b.Op == token.ADD || b.Op == token.SUB }

// steps reports whether e is p plus or minus a constant, through the merges of
// the loop's branches: a counter that only some turns raise still counts.
// The step may have any size: a loop that counts by two is counted too.
func steps(e ssa.Value, p *ssa.Phi, depth int) bool {
	if depth > 5 {
		return false
	}
	switch e := e.(type) {
	case *ssa.BinOp:
		return addsUp(e) && (e.X == p || e.Y == p || steps(e.X, p, depth+1))
	case *ssa.Phi:
		if e == p {
			return depth > 0
		}
		return slices.ContainsFunc(e.Edges, func(x ssa.Value) bool { return x != p && steps(x, p, depth+1) })
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
	n, ok := dataflow.ConstInt(max)
	if !ok {
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
	// Tested after the operation: one attempt more.
	if slices.ContainsFunc(r.ops, func(c *ssa.Call) bool { return c.Block().Dominates(r.at) }) {
		attempts++
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
			if n, ok := dataflow.ConstInt(e); ok {
				return n
			}
		}
	case *ssa.BinOp:
		n := counterStart(v.X)
		if k, ok := dataflow.ConstInt(v.Y); ok && v.Op == token.ADD {
			return n + k
		}
		return n
	case *ssa.Convert:
		return counterStart(v.X)
	}
	return 0
}
