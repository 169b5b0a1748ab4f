package dataflow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// SameOperation reports whether the operations of a test are the same ones in
// the next turn: none of their arguments is an element that the loop walks over.
// ok is the edge that the test takes after a success.
//
// A loop that sends each message of a list goes on after a failure, and is no
// retry: its next call is another one. Only what varies in turns that fail
// counts, since a consumer fetches the next message after a success. A request of
// net/http is the operation, whichever connection of a pool it goes by next.
func SameOperation(f *Func, ops []*ssa.Call, ok Edge, l *Loop) bool {
	failed, _ := l.WalkTurn(func(e Edge) bool { return e == ok })
	for _, c := range ops {
		v := &varying{f: f, l: l, failed: failed, seen: map[ssa.Value]bool{}}
		operands := c.Operands(nil)
		if i := slices.IndexFunc(operands, func(op *ssa.Value) bool { return *op != nil && IsNamed((*op).Type(), "net/http", "Request") }); i >= 0 {
			operands = operands[i : i+1]
		}
		if slices.ContainsFunc(operands, func(op *ssa.Value) bool { return v.item(*op, 0) }) {
			return false
		}
	}
	return true
}

// varying looks for items of an iteration in the definition of a value: the
// element of a range, what a channel yields, an entry by a running index.
// The walk stops after ten steps: an item that lies deeper is missed, and the
// loop may then be taken for a retry.
type varying struct {
	f      *Func
	l      *Loop
	failed map[*ssa.BasicBlock]bool // the blocks of a turn that fails
	seen   map[ssa.Value]bool
}

// storesItem reports whether a turn that fails may store an item at addr.
func (v *varying) storesItem(addr ssa.Value, depth int) bool {
	return slices.ContainsFunc(v.f.stores[addr], func(s *ssa.Store) bool {
		return v.failed[s.Block()] && v.item(s.Val, depth+1)
	})
}

// item reports whether x is an item, or is computed from one inside the loop.
func (v *varying) item(x ssa.Value, depth int) bool {
	if v.seen[x] || depth > 10 {
		return false
	}
	in, isInstr := x.(ssa.Instruction)
	if _, isParam := x.(*ssa.Parameter); isParam && v.storedItem(x, depth) {
		return true
	}
	if !isInstr {
		return false
	}
	v.seen[x] = true
	// A variable that is not lifted is what the loop stores in it.
	// Its own definition says nothing.
	if a, ok := x.(*ssa.Alloc); ok {
		return v.cell(a, depth)
	}
	if v.storedItem(x, depth) {
		return true
	}
	if !v.l.Contains(in) {
		return false
	}
	switch x := x.(type) {
	case *ssa.Next:
		// A range inside of the loop begins anew in each turn.
		begun, isRange := x.Iter.(*ssa.Range)
		return !isRange || !v.l.Contains(begun) || v.item(begun.X, depth+1)
	case *ssa.Select:
		return true
	case *ssa.IndexAddr:
		return v.index(x.Index) || v.item(x.X, depth+1)
	case *ssa.Index:
		return v.index(x.Index) || v.item(x.X, depth+1)
	case *ssa.Lookup:
		return v.item(x.Index, depth+1)
	case *ssa.UnOp:
		// A tick is no item: the clock sends the same thing each time.
		if x.Op == token.ARROW {
			return !IsTimeChan(x.X.Type())
		}
		return v.item(x.X, depth+1) || v.storesItem(x.X, depth)
	case *ssa.Phi:
		return v.phi(x, depth)
	case *ssa.Call:
		if yieldsItem(x) {
			return true
		}
		return slices.ContainsFunc(x.Common().Args, func(a ssa.Value) bool { return v.item(a, depth+1) })
	}
	return slices.ContainsFunc(in.Operands(nil), func(op *ssa.Value) bool { return *op != nil && v.item(*op, depth+1) })
}

// yieldsItem reports whether c calls a method by which iterators, scanners and
// queues yield their items, or a function value of that name. One that is told
// something computes from it, and a duration is the next step of a backoff.
func yieldsItem(c *ssa.Call) bool {
	com := c.Common()
	switch CalleeName(com) {
	case "Next", "Text", "Pop":
	case "next", "pop": // as a method, what a pool of connections picks by as well
		if com.IsInvoke() || com.StaticCallee() != nil {
			return false
		}
	default:
		return false
	}
	return com.Signature().Params().Len() == 0 && !IsDuration(c.Type())
}

// storedItem reports whether the loop stores an item in a field of the struct
// that x points to: c.current = servers[i]; c.connect().
func (v *varying) storedItem(x ssa.Value, depth int) bool {
	if _, ok := x.Type().Underlying().(*types.Pointer); !ok {
		return false
	}
	for fa := range Refs[*ssa.FieldAddr](x) {
		if v.storesItem(fa, depth) {
			return true
		}
	}
	return false
}

// index reports whether i walks over a table one by one. A modulo makes it a
// rotation, in which every element has its turn again.
func (v *varying) index(i ssa.Value) bool {
	switch i := i.(type) {
	case *ssa.Phi:
		return v.l.Contains(i) && !v.begunAnew(i)
	case *ssa.BinOp:
		if i.Op == token.REM {
			return false
		}
		return v.index(i.X) || v.index(i.Y)
	case *ssa.Convert:
		return v.index(i.X)
	case *ssa.UnOp:
		return slices.ContainsFunc(v.f.StoresTo(i.X), func(s *ssa.Store) bool { return v.l.Contains(s) })
	}
	return false
}

// begunAnew reports whether a counter belongs to a loop inside of this one, and
// begins with a constant there: each turn walks over the same elements.
func (v *varying) begunAnew(i *ssa.Phi) bool {
	inner := v.f.Innermost[i.Block()]
	if inner == v.l || inner == nil || inner.Header != i.Block() {
		return false
	}
	for n, e := range i.Edges {
		if !inner.Blocks[i.Block().Preds[n]] && !IsConst(e) {
			return false
		}
	}
	return true
}

// phi reports whether a merged value is an item in one of its edges. The edges
// of turns that succeed are left out. A pointer that walks a list (node =
// node.next) is not recognized: it leads back to itself.
func (v *varying) phi(p *ssa.Phi, depth int) bool {
	for i, e := range p.Edges {
		if pred := p.Block().Preds[i]; v.l.Blocks[pred] && !v.failed[pred] {
			continue
		}
		if v.item(e, depth+1) {
			return true
		}
	}
	return false
}

// cell looks at what the loop stores in a variable or in its fields.
func (v *varying) cell(a *ssa.Alloc, depth int) bool {
	for addr := range v.f.stores {
		if root(addr) == a && v.storesItem(addr, depth) {
			return true
		}
	}
	return false
}

// root returns the variable that an address lies in.
// Six steps are enough for the nesting that real code has.
func root(addr ssa.Value) ssa.Value {
	for range 6 {
		switch addr.(type) {
		case *ssa.FieldAddr, *ssa.IndexAddr, *ssa.Slice:
			addr = Operand(addr)
		default:
			return addr
		}
	}
	return addr
}

// ItemLoop reports whether l walks over a collection, a channel or a ticker:
// range, or a receive at its head. Such a loop ends with its items, so that
// going on after a failure is nothing that a retry would need to be.
func ItemLoop(f *Func, l *Loop) bool {
	for b := range l.Blocks {
		if f.Innermost[b] != l {
			continue
		}
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Next:
				return true
			case *ssa.UnOp:
				if in.Op == token.ARROW && in.CommaOk && b == l.Header {
					return true
				}
			}
		}
	}
	i := IfOf(l.Header)
	if i == nil {
		return false
	}
	// SSA lowers a range over a slice to a counter that is compared with len.
	cmp, ok := i.Cond.(*ssa.BinOp)
	if !ok || cmp.Op != token.LSS {
		return false
	}
	c, ok := cmp.Y.(*ssa.Call)
	if !ok {
		return false
	}
	// A method may have the name too.
	if b, isBuiltin := c.Common().Value.(*ssa.Builtin); !isBuiltin || b.Name() != "len" {
		return false
	}
	_, isSlice := c.Common().Args[0].Type().Underlying().(*types.Slice)
	return isSlice
}

// CountsTurns reports whether l ends after so many turns, however they go: it counts
// each of them, up to a limit that it does not change.
func CountsTurns(l *Loop) bool {
	i := IfOf(l.Header)
	if i == nil {
		return false
	}
	cmp, ok := i.Cond.(*ssa.BinOp)
	if !ok || cmp.Op != token.LSS && cmp.Op != token.LEQ {
		return false
	}
	p, ok := cmp.X.(*ssa.Phi)
	if !ok || p.Block() != l.Header || !settled(cmp.Y, l, 0) {
		return false
	}
	for n, e := range p.Edges {
		if !l.Blocks[p.Block().Preds[n]] {
			continue
		}
		step, ok := e.(*ssa.BinOp)
		if !ok || step.Op != token.ADD || step.X != ssa.Value(p) || !IsConst(step.Y) {
			return false
		}
	}
	return true
}

// settled reports whether a limit is computed from what l does not make: settings,
// that is, and what came before. Eight steps are enough for one.
func settled(v ssa.Value, l *Loop, depth int) bool {
	in, ok := v.(ssa.Instruction)
	if !ok || !l.Contains(in) {
		return true
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		return depth < 8 && settled(v.X, l, depth+1) && settled(v.Y, l, depth+1)
	case *ssa.UnOp, *ssa.FieldAddr, *ssa.Field, *ssa.Convert:
		return depth < 8 && settled(Operand(v), l, depth+1)
	}
	return false
}
