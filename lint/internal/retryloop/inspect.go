package retryloop

import (
	"iter"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/bound"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Instrs yields the instructions of one kind in the region's loop (in the whole
// function, for a recursion).
func Instrs[T any](r *Region) iter.Seq[T] { return dataflow.InstrsIn[T](r.Fn, r.Loop) }

// Contains reports whether in belongs to the region's loop.
func (r *Region) Contains(in ssa.Instruction) bool {
	return r.Loop == nil || r.Loop.Contains(in)
}

// Again reports whether another attempt may follow in: some path from its block
// comes back to the head of the loop.
func (r *Region) Again(in ssa.Instruction) bool {
	if !r.Loop.Contains(in) {
		return false
	}
	_, back := r.Loop.Walk(in.Block(), nil)
	return back || in.Block() == r.Loop.Header
}

// InFailedTurn reports whether in runs in a turn that fails: on the way to one
// of the region's failures, or after it. What runs only in turns that succeed
// is not repeated.
func (r *Region) InFailedTurn(in ssa.Instruction) bool {
	if r.Loop == nil {
		return false
	}
	for _, t := range r.Tests {
		succeeds := func(e dataflow.Edge) bool { return e == t.ok() }
		turn, _ := r.Loop.WalkTurn(succeeds)
		if !turn[in.Block()] {
			continue
		}
		if in.Block() == r.Loop.Header && turn[t.If.Block()] {
			return true
		}
		after, _ := r.Loop.Walk(t.fail().To(), nil)
		before, _ := r.Loop.Walk(in.Block(), succeeds)
		if after[in.Block()] || before[t.If.Block()] {
			return true
		}
	}
	return false
}

// Inside returns the region of the same function whose loop lies inside this
// one's and whose failure this one retries, or nil: attempts multiply.
func (r *Region) Inside() *Region {
	if r.Loop == nil {
		return nil
	}
	for _, o := range r.f.regions() {
		if o == r || o.Loop == nil || !o.Pure || o.Loop == r.Loop {
			continue
		}
		for l := o.Loop.Parent; l != nil; l = l.Parent {
			if l == r.Loop {
				return o
			}
		}
	}
	return nil
}

// InspectsError reports whether the region looks into the errors of its
// operations before it tries again: errors.Is, a predicate, a type assertion, a
// comparison of texts. What it then retries is its choice, and less is certain.
// Its failures are not all retried, so that findings about single statuses are
// less sure.
func (r *Region) InspectsError() bool {
	for in := range Instrs[ssa.Instruction](r) {
		looks := false
		switch in := in.(type) {
		case *ssa.TypeAssert:
			looks = implementsError(in.X)
		case *ssa.Call:
			text := in.Common().IsInvoke() && in.Common().Method.Name() == "Error"
			looks = (text || slices.ContainsFunc(in.Common().Args, implementsError)) && tested(in, map[ssa.Value]bool{})
		}
		if looks {
			return true
		}
	}
	return false
}

// tested reports whether v, or a part of it, is branched on.
func tested(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for ref := range dataflow.Refs[ssa.Instruction](v) {
		switch ref := ref.(type) {
		case *ssa.If:
			return true
		case *ssa.BinOp, *ssa.UnOp, *ssa.Extract:
			if tested(ref.(ssa.Value), seen) {
				return true
			}
		}
	}
	return false
}

// CheckedLate reports whether the region's counter is tested only at the head or
// at the foot of the loop, so that the wait after the last failure leads to no
// attempt. A second look at the counter is most likely the one that avoids it,
// and a wait that not every attempt passes may be meant for something else.
// It returns false for a recursion.
func (r *Region) CheckedLate() bool {
	if r.Loop == nil || !r.Bound.Counter || r.WaitFirst || len(r.Waits) == 0 {
		return false
	}
	var count *ssa.BasicBlock // the only block that looks at the counter
	for b := range r.Loop.Blocks {
		i := dataflow.IfOf(b)
		if i == nil || !bound.CountsIn(r.f.Func, i.Cond, r.Loop) {
			continue
		}
		if count != nil {
			return false
		}
		count = b
	}
	if count == nil || count != r.Loop.Header && !r.waitsBefore(count) {
		return false
	}
	for _, w := range r.Waits {
		for _, op := range r.Ops {
			if !op.Block().Dominates(w.Instr.Block()) {
				return false
			}
		}
	}
	return true
}

// waitsBefore reports whether a wait comes before block b in every turn: b is
// the foot of the loop, where the counter is looked at too late.
func (r *Region) waitsBefore(b *ssa.BasicBlock) bool {
	return slices.ContainsFunc(r.Waits, func(w *delay.Wait) bool { return w.Instr.Block().Dominates(b) })
}

// DeferredEqualJitter returns the waits with equal jitter that fn keeps for a
// later attempt, outside of the regions, which judge their own waits.
func (r *Result) DeferredEqualJitter(fn *ssa.Function) []*ssa.BinOp {
	return slices.DeleteFunc(delay.Deferred(r.Known.Scope(fn)), func(wait *ssa.BinOp) bool {
		return slices.ContainsFunc(r.of(fn).regions(), func(reg *Region) bool { return reg.Contains(wait) })
	})
}

// Counts reports whether the region counts its attempts. Where a success ends it,
// each turn but the last has failed, and a count of the turns is one of failures
// even where it is no limit: of what leaves the process, or is made like it. A loop
// that goes on after a success may count what it has done, and one that waits for a
// state of its own process may count how long.
func (r *Region) Counts() bool {
	if r.Bound.Counter {
		return true
	}
	far := r.Boundary == send.Remote || r.Boundary == send.Unknown && r.Interruptible()
	return far && r.Pure && r.Loop != nil && r.Loop.Header != nil && bound.Counts(r.Loop)
}
