package retry

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
)

// What rules ask of a retry beyond its picture: each question carries it out once
// more.

// InFailedTurn reports whether a turn whose operation fails comes by a block, and is
// followed by another.
func (p *Package) InFailedTurn(r *Retry, b *ssa.BasicBlock) bool {
	for _, op := range r.Ops {
		for _, s := range scenes(op) {
			m := p.Carry(r.Fn, r.Loop, op, s)
			if _, again := m.Again(); again && m.Passed(b) {
				return true
			}
		}
	}
	return false
}

// AfterAnswer reports whether a response that came leads to another attempt.
func (p *Package) AfterAnswer(r *Retry, op *ssa.Call) bool {
	for _, status := range []int64{503, 429, 500, 400} {
		m := p.Carry(r.Fn, r.Loop, op, eval.Scene{Outcome: eval.Answered, Status: status})
		if certain, _ := m.Again(); certain {
			return true
		}
	}
	return false
}

// CheckedLate reports whether the retry asks for the number of the attempt at the
// head of a turn alone, and not before it waits.
func (r *Retry) CheckedLate() bool {
	atHead := false
	for b := range r.Loop.Blocks {
		br, ok := b.Instrs[len(b.Instrs)-1].(*ssa.If)
		if !ok {
			continue
		}
		var bound Bound
		bound.exit(r, br.Cond, 0)
		if !bound.Counter {
			continue
		}
		cmp, isComparison := br.Cond.(*ssa.BinOp)
		if !isComparison || cmp.Op == token.EQL || cmp.Op == token.NEQ {
			return false
		}
		if r.Loop.Blocks[b.Succs[0]] && r.Loop.Blocks[b.Succs[1]] {
			return false // it chooses within a turn: whether to wait, as it may be
		}
		if b != r.Loop.Header && !latch(b, r.Loop) {
			return false
		}
		atHead = true
	}
	return atHead
}

// latch reports whether a block goes back to the head of the loop by itself.
func latch(b *ssa.BasicBlock, l *eval.Loop) bool {
	return slices.Contains(b.Succs, l.Header)
}
