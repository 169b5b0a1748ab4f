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
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Func is one function with what its code says of loops and variables. Values
// are followed back to where they were made, through the shapes that SSA leaves
// between a call and the test of its result: results, merges of branches,
// variables that could not be lifted because a closure or a field holds them.
//
// All of it is about this function alone: no call is entered. A Func is made
// once for a function, and not changed; it may be read concurrently.
type Func struct {
	Fn *ssa.Function
	// Loops are inner ones first. Innermost holds the smallest loop around each
	// block, and nothing for a block outside of all loops.
	Loops     []*Loop
	Innermost map[*ssa.BasicBlock]*Loop
	// stores are by address, so that a variable in a cell, the common case,
	// costs one look.
	stores map[ssa.Value][]*ssa.Store // by address
}

// NewFunc reads a function, whose body must have been built.
func NewFunc(fn *ssa.Function) *Func {
	r := &Func{Fn: fn, stores: map[ssa.Value][]*ssa.Store{}}
	r.Loops, r.Innermost = loopsOf(fn)
	for s := range Instrs[*ssa.Store](fn) {
		r.stores[s.Addr] = append(r.stores[s.Addr], s)
	}
	return r
}

// StoresTo returns the stores to the same variable as addr, in the order of the
// code: the same cell, or the same field of the same base.
//
// SSA gives each mention of a field an address of its own, so s.err is stored to
// by one value and read through another. Two addresses are taken to be the same
// only when that is certain; a store through an alias is not seen.
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

// sameBase reports whether two addresses certainly name the same variable: they
// are one value, or the same path of fields and reads leads to them.
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

// SameVariable reports whether two values are certainly the same one: they are
// one value, or are read from the same variable or field. A variable that is
// assigned between the two reads may differ.
func SameVariable(a, b ssa.Value) bool { return sameBase(a, b) }

// Assigned reports whether a closure stores to a variable that it captured.
// Stores to a field or an element of it do not count.
func Assigned(v *ssa.FreeVar) bool {
	for s := range Refs[*ssa.Store](v) {
		if s.Addr == v {
			return true
		}
	}
	return false
}

// Assigns reports whether a closure stores to the variable at addr, which it
// captured.
func Assigns(mc *ssa.MakeClosure, addr ssa.Value) bool {
	i := slices.Index(mc.Bindings, addr)
	return i >= 0 && Assigned(mc.Fn.(*ssa.Function).FreeVars[i])
}

// Instrs yields the instructions of fn that are of one kind, in the order of
// its blocks. The kind is a type such as *ssa.Call, or an interface. Most of
// what is looked for in a function is of one kind, and the block does not
// matter; where it does, the instruction knows its own.
func Instrs[T any](fn *ssa.Function) iter.Seq[T] { return InstrsIn[T](fn, nil) }

// InstrsIn is Instrs for the blocks of a loop; without one, for all of fn.
func InstrsIn[T any](fn *ssa.Function, l *Loop) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, b := range fn.Blocks {
			if l != nil && !l.Blocks[b] {
				continue
			}
			for _, in := range b.Instrs {
				if in, ok := in.(T); ok && !yield(in) {
					return
				}
			}
		}
	}
}

// Refs yields the instructions of one kind that use v. What is no part of a
// function, such as a constant, has no list of its users, and yields none.
func Refs[T any](v ssa.Value) iter.Seq[T] {
	return func(yield func(T) bool) {
		refs := v.Referrers()
		if refs == nil {
			return
		}
		for _, in := range *refs {
			if in, ok := in.(T); ok && !yield(in) {
				return
			}
		}
	}
}
