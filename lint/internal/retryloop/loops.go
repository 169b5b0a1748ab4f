package retryloop

import (
	"maps"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Loop is a natural loop of a function's control-flow graph: for, range and
// goto loops alike.
type Loop struct {
	Header *ssa.BasicBlock
	Blocks map[*ssa.BasicBlock]bool
	Parent *Loop // the smallest loop around this one, or nil
}

// contains reports whether in belongs to the loop, nested loops included.
func (l *Loop) contains(in ssa.Instruction) bool {
	return l != nil && in != nil && l.Blocks[in.Block()]
}

// loopsOf returns the natural loops of fn, inner ones first, and the innermost
// loop of each block.
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

// edge is one control-flow edge: successor i of a block.
type edge struct {
	from *ssa.BasicBlock
	i    int
}

func (e edge) to() *ssa.BasicBlock { return e.from.Succs[e.i] }

// walk collects the blocks of l that can be reached from start without taking
// an edge that skip refuses and without passing the header again; back reports
// whether the header itself was reached.
func (l *Loop) walk(start *ssa.BasicBlock, skip func(edge) bool) (seen map[*ssa.BasicBlock]bool, back bool) {
	seen = map[*ssa.BasicBlock]bool{}
	work := []*ssa.BasicBlock{start}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if b == l.Header {
			back = true
			continue
		}
		if seen[b] || !l.Blocks[b] || noReturn(b) {
			continue
		}
		seen[b] = true
		for i, s := range b.Succs {
			if skip == nil || !skip(edge{b, i}) {
				work = append(work, s)
			}
		}
	}
	return seen, back
}

// walkTurn collects the blocks of one turn: what can be reached from the header
// without taking an edge that skip refuses.
func (l *Loop) walkTurn(skip func(edge) bool) (seen map[*ssa.BasicBlock]bool, back bool) {
	seen = map[*ssa.BasicBlock]bool{}
	if l.Header == nil { // a recursion: the whole function
		return l.Blocks, true
	}
	seen[l.Header] = true
	for i, s := range l.Header.Succs {
		if skip(edge{l.Header, i}) {
			continue
		}
		more, again := l.walk(s, skip)
		back = back || again
		maps.Copy(seen, more)
	}
	return seen, back
}

// noReturn reports whether b ends the program: log.Fatal and its like, which
// the control-flow graph does not know without facts about their packages.
func noReturn(b *ssa.BasicBlock) bool {
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
