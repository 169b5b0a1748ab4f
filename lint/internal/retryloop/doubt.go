package retryloop

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Doubtful reports whether, between one of the answers in mask and the next
// attempt, a branch that nobody can judge may leave the region: the answer's
// body may say more than its status.
func (r *Region) Doubtful(mask uint16, grpc bool) bool {
	return slices.ContainsFunc(r.f.pkg.judge.undecided(r.f.Scope, r.Loop, mask, grpc), func(br *ssa.If) bool {
		return r.mayLeave(br.Block()) && !r.plainExit(br.Cond, 0)
	})
}

// mayLeave reports whether one branch of b leads to no further attempt and the
// other may.
func (r *Region) mayLeave(b *ssa.BasicBlock) bool {
	_, one := r.Loop.walk(b.Succs[0], nil)
	_, other := r.Loop.walk(b.Succs[1], nil)
	return one != other
}

// plainExit reports whether a condition says nothing of the answer: a counter,
// a clock, a context, an error of something else, a setting.
func (r *Region) plainExit(v ssa.Value, depth int) bool {
	if depth > 5 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Const, *ssa.Parameter, *ssa.FreeVar, *ssa.Global:
		return true
	case *ssa.UnOp:
		if v.Op == token.MUL {
			return len(r.f.origins(v, r.Loop)) == 0
		}
		return r.plainExit(v.X, depth+1)
	case *ssa.BinOp:
		if isNil(v.Y) && isError(v.X.Type()) || countsIn(r.f.Func, v, r.Loop) || timely(v.X, 0) || timely(v.Y, 0) {
			return true
		}
		return r.plainExit(v.X, depth+1) && r.plainExit(v.Y, depth+1)
	case *ssa.Extract: // a case of a select, a turn of a range
		switch v.Tuple.(type) {
		case *ssa.Select, *ssa.Next:
			return true
		}
	case *ssa.Call:
		return CalleePkg(v.Common()) == "time" || CalleePkg(v.Common()) == "context"
	case *ssa.Phi:
		for _, e := range v.Edges {
			if e != ssa.Value(v) && !r.plainExit(e, depth+1) {
				return false
			}
		}
		return true
	}
	_, isInstr := v.(ssa.Instruction)
	return !isInstr || !r.Loop.contains(v.(ssa.Instruction))
}
