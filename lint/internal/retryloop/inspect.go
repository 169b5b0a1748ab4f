package retryloop

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// Each calls visit for every instruction of the region's loop (of the whole
// function, for a recursion).
func (r *Region) Each(visit func(ssa.Instruction)) {
	for _, b := range r.Fn.Blocks {
		if r.Loop != nil && !r.Loop.Blocks[b] {
			continue
		}
		for _, in := range b.Instrs {
			visit(in)
		}
	}
}

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

// Origins returns the calls inside the region that v carries results of.
func (r *Region) Origins(v ssa.Value) []*ssa.Call { return r.f.Origins(v, r.Loop) }

// StoresTo returns the stores to the variable at addr.
func (r *Region) StoresTo(addr ssa.Value) []*ssa.Store { return r.f.StoresTo(addr) }

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

// CalleeSummary returns what is known of the function behind a call of the
// region.
func (r *Region) CalleeSummary(c *ssa.Call) *fact.Summary { return r.f.Known.Of(c.Common()) }

// InspectsError reports whether the region looks into the errors of its
// operations before it tries again: errors.Is, a predicate, a type assertion, a
// comparison of texts. What it then retries is its choice, and less is certain.
// Its failures are not all retried, so that findings about single statuses are
// less sure.
func (r *Region) InspectsError() bool {
	found := false
	r.Each(func(in ssa.Instruction) {
		switch in := in.(type) {
		case *ssa.TypeAssert:
			found = found || dataflow.IsError(in.X.Type())
		case *ssa.Call:
			com := in.Common()
			if com.IsInvoke() && com.Method.Name() == "Error" {
				found = found || tested(in)
				return
			}
			for _, a := range com.Args {
				if dataflow.IsError(a.Type()) && tested(in) {
					found = true
				}
			}
		}
	})
	return found
}

// tested reports whether v, or a part of it, is branched on.
func tested(v ssa.Value) bool {
	if v.Referrers() == nil {
		return false
	}
	for _, ref := range *v.Referrers() {
		switch ref := ref.(type) {
		case *ssa.If:
			return true
		case *ssa.BinOp:
			if tested(ref) {
				return true
			}
		case *ssa.UnOp:
			if tested(ref) {
				return true
			}
		case *ssa.Extract:
			if tested(ref) {
				return true
			}
		}
	}
	return false
}

// DeferredEqualJitter returns the waits with equal jitter that fn keeps for a
// later attempt, outside of the regions, which judge their own waits.
func (r *Result) DeferredEqualJitter(fn *ssa.Function) []*ssa.BinOp {
	return slices.DeleteFunc(delay.Deferred(r.known.Scope(fn)), func(wait *ssa.BinOp) bool {
		return slices.ContainsFunc(r.pkg.of(fn).regions(), func(reg *Region) bool { return reg.Contains(wait) })
	})
}
