package dataflow

import (
	"go/token"
	"maps"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Loop is a natural loop of a function's control-flow graph: for, range and
// goto loops alike. A recursion that is treated as a loop has no header, and all
// blocks of its function.
type Loop struct {
	Header *ssa.BasicBlock
	Blocks map[*ssa.BasicBlock]bool
	Parent *Loop // the smallest loop around this one, or nil
}

// Contains reports whether in belongs to the loop, nested loops included. A nil
// loop contains nothing.
func (l *Loop) Contains(in ssa.Instruction) bool {
	return l != nil && in != nil && l.Blocks[in.Block()]
}

// loopsOf returns the natural loops of fn, inner ones first, and the innermost
// loop of each block. A back edge is one to a block that dominates its source;
// two of them to the same header, as continue makes them, are one loop. Jumps
// into the middle of a loop make none, and are left alone.
func loopsOf(fn *ssa.Function) ([]*Loop, map[*ssa.BasicBlock]*Loop) {
	byHeader := map[*ssa.BasicBlock]*Loop{}
	var loops []*Loop
	for _, b := range fn.Blocks {
		for _, h := range b.Succs {
			if !h.Dominates(b) {
				continue
			}
			l := byHeader[h]
			if l == nil {
				l = &Loop{Header: h, Blocks: map[*ssa.BasicBlock]bool{h: true}}
				byHeader[h] = l
				loops = append(loops, l)
			}
			l.grow(b)
		}
	}
	// A loop inside another one has fewer blocks, so the first that holds a
	// block is the innermost, and the next that holds its header its parent.
	slices.SortStableFunc(loops, func(a, b *Loop) int { return len(a.Blocks) - len(b.Blocks) })
	innermost := map[*ssa.BasicBlock]*Loop{}
	for i, l := range loops {
		for b := range l.Blocks {
			if innermost[b] == nil {
				innermost[b] = l
			}
		}
		for _, outer := range loops[i+1:] {
			if outer.Blocks[l.Header] && outer != l {
				l.Parent = outer
				break
			}
		}
	}
	return loops, innermost
}

// grow adds the blocks from which the back edge's source can be reached.
// It walks backwards and stops at the header, which is in the set from the
// start.
func (l *Loop) grow(tail *ssa.BasicBlock) {
	work := []*ssa.BasicBlock{tail}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if l.Blocks[b] {
			continue
		}
		l.Blocks[b] = true
		work = append(work, b.Preds...)
	}
}

// Edge is one control-flow edge: successor i of a block.
type Edge struct {
	From *ssa.BasicBlock
	I    int
}

// To returns the block that the edge leads to.
func (e Edge) To() *ssa.BasicBlock { return e.From.Succs[e.I] }

// Walk collects the blocks of l that can be reached from start without taking
// an edge that skip refuses and without passing the header again; back reports
// whether the header itself was reached. It is the question behind most
// verdicts: after this failure, is there another attempt?
func (l *Loop) Walk(start *ssa.BasicBlock, skip func(Edge) bool) (seen map[*ssa.BasicBlock]bool, back bool) {
	seen = map[*ssa.BasicBlock]bool{}
	work := []*ssa.BasicBlock{start}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if b == l.Header {
			back = true
			continue
		}
		if seen[b] || !l.Blocks[b] || NoReturn(b) {
			continue
		}
		seen[b] = true
		for i, s := range b.Succs {
			if skip == nil || !skip(Edge{b, i}) {
				work = append(work, s)
			}
		}
	}
	return seen, back
}

// WalkTurn collects the blocks of one turn: what can be reached from the header
// without taking an edge that skip refuses. A caller that refuses the edges of
// success gets the turns that fail.
func (l *Loop) WalkTurn(skip func(Edge) bool) (seen map[*ssa.BasicBlock]bool, back bool) {
	seen = map[*ssa.BasicBlock]bool{}
	if l.Header == nil { // a recursion: the whole function
		return l.Blocks, true
	}
	seen[l.Header] = true
	for i, s := range l.Header.Succs {
		if skip(Edge{l.Header, i}) {
			continue
		}
		more, again := l.Walk(s, skip)
		back = back || again
		maps.Copy(seen, more)
	}
	return seen, back
}

// NoReturn reports whether b ends the program: log.Fatal and its like, which
// the control-flow graph does not know without facts about their packages.
// The names are matched without their package: a logger of any make may be in
// use. A wrong match only ends a path early, which keeps the linter silent.
func NoReturn(b *ssa.BasicBlock) bool {
	for _, in := range b.Instrs {
		c, ok := in.(*ssa.Call)
		if !ok {
			continue
		}
		switch CalleeName(c.Common()) {
		case "Fatal", "Fatalf", "Fatalln", "FailNow", "Panicf", "Fatalw":
			return true
		case "Exit":
			return CalleePkg(c.Common()) == "os"
		}
	}
	return false
}

// CaseStays reports whether case n of a select goes on with the loop. The select
// yields a number, which a chain of comparisons looks at; the branch of case n
// is the one behind the comparison with n.
func CaseStays(sel *ssa.Select, n int, l *Loop) bool {
	if l == nil {
		return true
	}
	for x := range Refs[*ssa.Extract](sel) {
		if x.Index != 0 {
			continue
		}
		for cmp := range Refs[*ssa.BinOp](x) {
			if k, ok := ConstInt(cmp.Y); !ok || cmp.Op != token.EQL || int(k) != n {
				continue
			}
			for i := range Refs[*ssa.If](cmp) {
				_, back := l.Walk(i.Block().Succs[0], nil)
				return back
			}
		}
	}
	// The last case of a blocking select needs no comparison of its own.
	return true
}

// Before reports whether a always runs before b: in a block that dominates that
// of b, or further up in the same one, which dominance cannot order.
func Before(a, b ssa.Instruction) bool {
	if a.Block() != b.Block() {
		return a.Block().Dominates(b.Block())
	}
	instrs := a.Block().Instrs
	return slices.Index(instrs, a) < slices.Index(instrs, b)
}

// Reaches reports whether control may go from one block to another.
func Reaches(from, to *ssa.BasicBlock) bool {
	seen := map[*ssa.BasicBlock]bool{}
	work := []*ssa.BasicBlock{from}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if b == to {
			return true
		}
		if !seen[b] {
			seen[b] = true
			work = append(work, b.Succs...)
		}
	}
	return false
}
