package retryloop

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/bound"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/status"
)

// RetriedStatuses returns the responses after which the region certainly begins
// another attempt, as a mask. Zero means that the region does not look at
// statuses, or cannot be judged.
func (r *Region) RetriedStatuses(grpc bool) uint16 {
	if r.Loop == nil {
		return 0
	}
	return r.f.pkg.Judge.Retried(r.f.Scope, r.Loop, grpc)
}

// OnStatus reports whether a branch of the region itself looks at a status.
// Only such a region has a response at hand when it fails.
func (r *Region) OnStatus() bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool { return t.Status })
}

// OnCertificateError reports whether a branch on an error of crypto/x509 leads
// to another attempt.
func (r *Region) OnCertificateError() bool {
	return slices.ContainsFunc(r.Tests, func(t *Test) bool { return status.CertificateTest(t.If.Cond) })
}

// Doubtful reports whether, between one of the responses in mask and the next
// attempt, a branch that cannot be judged may leave the region: the body of the
// response may say more than its status.
func (r *Region) Doubtful(mask uint16, grpc bool) bool {
	return slices.ContainsFunc(r.f.pkg.Judge.Undecided(r.f.Scope, r.Loop, mask, grpc), func(br *ssa.If) bool {
		return r.mayLeave(br.Block()) && !r.plainExit(br.Cond, 0)
	})
}

// mayLeave reports whether one branch of b leads to no further attempt and the
// other may.
func (r *Region) mayLeave(b *ssa.BasicBlock) bool {
	_, one := r.Loop.Walk(b.Succs[0], nil)
	_, other := r.Loop.Walk(b.Succs[1], nil)
	return one != other
}

// plainExit reports whether a condition says nothing of the response: a counter,
// a clock, a context, an error of something else, a setting. What is computed
// outside of the loop cannot depend on a response in it.
func (r *Region) plainExit(v ssa.Value, depth int) bool {
	if depth > 5 {
		return false
	}
	switch v := v.(type) {
	case *ssa.Const, *ssa.Parameter, *ssa.FreeVar, *ssa.Global:
		return true
	case *ssa.UnOp:
		if v.Op == token.MUL {
			return len(r.f.Origins(v, r.Loop)) == 0
		}
		return r.plainExit(v.X, depth+1)
	case *ssa.BinOp:
		if dataflow.IsNil(v.Y) && dataflow.IsError(v.X.Type()) || bound.CountsIn(r.f.Func, v, r.Loop) || dataflow.Timely(v.X, 0) || dataflow.Timely(v.Y, 0) {
			return true
		}
		return r.plainExit(v.X, depth+1) && r.plainExit(v.Y, depth+1)
	case *ssa.Extract: // a case of a select, a turn of a range
		switch v.Tuple.(type) {
		case *ssa.Select, *ssa.Next:
			return true
		}
	case *ssa.Call:
		return dataflow.CalleePkg(v.Common()) == "time" || dataflow.CalleePkg(v.Common()) == "context"
	case *ssa.Phi:
		return !slices.ContainsFunc(v.Edges, func(e ssa.Value) bool { return e != v && !r.plainExit(e, depth+1) })
	}
	in, isInstr := v.(ssa.Instruction)
	return !isInstr || !r.Loop.Contains(in)
}
