package eval

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Loop is a natural loop of the control-flow graph: of for, range and goto alike.
type Loop struct {
	Header *ssa.BasicBlock
	Blocks map[*ssa.BasicBlock]bool
	Parent *Loop // the loop around it, or nil
}

// Loops finds the loops of a function, inner ones first, and the innermost loop of
// each block.
func Loops(fn *ssa.Function) (loops []*Loop, innermost map[*ssa.BasicBlock]*Loop) {
	byHeader := map[*ssa.BasicBlock]*Loop{}
	for _, b := range fn.Blocks {
		for _, head := range b.Succs {
			if !head.Dominates(b) {
				continue
			}
			l := byHeader[head]
			if l == nil {
				l = &Loop{Header: head, Blocks: map[*ssa.BasicBlock]bool{head: true}}
				byHeader[head] = l
				loops = append(loops, l)
			}
			l.grow(b)
		}
	}
	slices.SortStableFunc(loops, func(a, b *Loop) int { return len(a.Blocks) - len(b.Blocks) })
	innermost = map[*ssa.BasicBlock]*Loop{}
	for i, l := range loops {
		for b := range l.Blocks {
			if innermost[b] == nil {
				innermost[b] = l
			}
		}
		for _, outer := range loops[i+1:] {
			if outer != l && outer.Blocks[l.Header] {
				l.Parent = outer
				break
			}
		}
	}
	return loops, innermost
}

// grow adds the blocks from which the source of a back edge can be reached.
func (l *Loop) grow(tail *ssa.BasicBlock) {
	for work := []*ssa.BasicBlock{tail}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if !l.Blocks[b] {
			l.Blocks[b] = true
			work = append(work, b.Preds...)
		}
	}
}

// Contains reports whether an instruction lies in the loop.
func (l *Loop) Contains(in ssa.Instruction) bool { return l.Blocks[in.Block()] }

// Returns reports whether the head of the loop can be reached from a block
// without leaving the loop.
func (l *Loop) Returns(from *ssa.BasicBlock) bool {
	seen := map[*ssa.BasicBlock]bool{}
	for work := []*ssa.BasicBlock{from}; len(work) > 0; {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if b == l.Header {
			return true
		}
		if !seen[b] && l.Blocks[b] {
			seen[b] = true
			work = append(work, b.Succs...)
		}
	}
	return false
}

// CaseStays reports whether case n of a select goes on with the loop.
func (l *Loop) CaseStays(sel *ssa.Select, n int) bool {
	for _, ref := range *sel.Referrers() {
		x, ok := ref.(*ssa.Extract)
		if !ok || x.Index != 0 {
			continue
		}
		for _, ref := range *x.Referrers() {
			cmp, ok := ref.(*ssa.BinOp)
			if !ok {
				continue
			}
			k, ok := cmp.Y.(*ssa.Const)
			if !ok || k.Value == nil || k.Int64() != int64(n) {
				continue
			}
			for _, ref := range *cmp.Referrers() {
				if br, ok := ref.(*ssa.If); ok {
					return l.Returns(br.Block().Succs[0])
				}
			}
		}
	}
	return true // the last case of a blocking select has no comparison of its own
}
