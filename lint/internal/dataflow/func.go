// Package dataflow follows control and values through the SSA form of one
// function: its loops, where a value was made, which function a call reaches,
// whether a call is the same one in the next turn of a loop.
//
// It knows nothing of retries. The packages above it give what it finds a
// meaning; they import it, and it imports none of them:
//
//	dataflow <- fact <- { delay  send  status  bound } <- retryloop
package dataflow

import (
	"iter"

	"golang.org/x/tools/go/ssa"
)

// Func follows values back to where they were made, through the shapes
// that SSA leaves between a call and the test of its result.
type Func struct {
	Fn        *ssa.Function
	Loops     []*Loop
	Innermost map[*ssa.BasicBlock]*Loop
	stores    map[ssa.Value][]*ssa.Store // by address
}

func NewFunc(fn *ssa.Function) *Func {
	r := &Func{Fn: fn, stores: map[ssa.Value][]*ssa.Store{}}
	r.Loops, r.Innermost = loopsOf(fn)
	for s := range Instrs[*ssa.Store](fn) {
		r.stores[s.Addr] = append(r.stores[s.Addr], s)
	}
	return r
}

// StoresTo returns the stores to the same variable as addr: the same cell, or
// the same field of the same base.
func (r *Func) StoresTo(addr ssa.Value) []*ssa.Store {
	if s := r.stores[addr]; len(s) > 0 {
		return s
	}
	var found []*ssa.Store
	if p, ok := addr.(*ssa.Phi); ok { // a loop variable that a closure captures: a cell for each turn
		for _, e := range p.Edges {
			if _, isCell := e.(*ssa.Alloc); isCell {
				found = append(found, r.stores[e]...)
			}
		}
		return found
	}
	fa, ok := addr.(*ssa.FieldAddr)
	if !ok {
		return nil
	}
	for s := range Instrs[*ssa.Store](r.Fn) { // in order: some callers look at the first or the last
		if o, ok := s.Addr.(*ssa.FieldAddr); ok && o.Field == fa.Field && sameBase(o.X, fa.X) {
			found = append(found, s)
		}
	}
	return found
}

// sameBase reports whether two addresses certainly name the same variable.
func sameBase(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *ssa.UnOp:
		b, ok := b.(*ssa.UnOp)
		return ok && a.Op == b.Op && sameBase(a.X, b.X)
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && sameBase(a.X, b.X)
	}
	return false
}

func StoredIn(fn *ssa.Function, addr ssa.Value) bool {
	for s := range Instrs[*ssa.Store](fn) {
		if s.Addr == addr {
			return true
		}
	}
	return false
}

// Instrs yields the instructions of fn that are of one kind, in the order of
// its blocks.
func Instrs[T any](fn *ssa.Function) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, b := range fn.Blocks {
			for _, in := range b.Instrs {
				if in, ok := in.(T); ok && !yield(in) {
					return
				}
			}
		}
	}
}
