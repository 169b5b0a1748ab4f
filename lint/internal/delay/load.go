package delay

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// load follows a read of a variable to what is stored in it, unless its name, or
// the response that it belongs to, says that a server chose it.
// SSA lifts most local variables; those that remain are captured, global or part
// of a struct.
func (s *slicer) load(v *ssa.UnOp, fr *frame) {
	// Of the operators with one operand, only * reads a variable. A receive
	// yields what another goroutine has decided.
	if v.Op != token.MUL {
		if v.Op == token.SUB {
			s.walk(v.X, fr)
			return
		}
		s.fl.plug = true
		return
	}
	if serverWord.MatchString(dataflow.ValueName(v)) {
		s.fl.server = true
		return
	}
	s.named(v)
	addr := v.X
	if fa, ok := addr.(*ssa.FieldAddr); ok && s.fields[dataflow.FieldVar(fa)] {
		s.selfMade = s.selfMade || s.arith > 0
		return
	}
	at := place{addr, fr}
	if entry, open := s.stack[at]; open {
		if s.arith > entry {
			s.fl.growing = true
		}
		return
	}
	switch a := addr.(type) {
	case *ssa.IndexAddr:
		s.indexed(a.X, a.Index, fr)
		return
	case *ssa.FieldAddr:
		if c := originCall(a.X); c != nil && s.ops[c] {
			s.fl.server = true
			return
		}
	}
	s.stack[at] = s.arith
	defer delete(s.stack, at)
	s.stored(addr, fr)
}

// stored walks what is stored to a variable that a wait is read from. Stores in
// the loop come first: they are what the next attempt sees. A cell without any
// goes back to what it began with, and what is written elsewhere, such as a
// field of a configuration, stays as it is.
func (s *slicer) stored(addr ssa.Value, fr *frame) {
	stores := fr.s.StoresTo(addr)
	inLoop := false
	for _, st := range stores {
		if fr.l == nil || fr.l.Contains(st) {
			inLoop = true
			s.walk(st.Val, fr)
		}
	}
	if inLoop {
		return
	}
	switch a := addr.(type) {
	case *ssa.Alloc:
		// A decoder or a flag parser may have written to it by its address.
		if escapesInLoop(addr, fr.l) {
			s.fl.plug = true
			return
		}
		for _, st := range stores {
			s.walk(st.Val, fr)
		}
		if len(stores) > 0 {
			return
		}
	case *ssa.FreeVar:
		// The wait may grow from call to call, so it is not judged.
		if dataflow.Assigned(a) {
			s.fl.plug = true
			return
		}
	case *ssa.FieldAddr:
		if s.ofStruct(a, fr) || s.elsewhere(a, fr) {
			return
		}
	case *ssa.Call:
		s.pointed(a, fr)
		return
	}
	s.fl.fixed = true
}

// pointed walks what a function of the package leaves at the pointer that it
// returns; nil is no wait. What other pointers point to is not known.
func (s *slicer) pointed(c *ssa.Call, fr *frame) {
	fn := dataflow.Static(c.Common())
	if fn == nil || len(fn.Blocks) == 0 || fr.depth >= 4 {
		s.fl.plug = true
		return
	}
	sub := &frame{s: fr.s.Known.Scope(fn), args: c.Common().Args, up: fr, depth: fr.depth + 1}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		switch r := ret.Results[0].(type) {
		case *ssa.Alloc:
			s.stored(r, sub)
		case *ssa.Const:
		default:
			s.fl.plug = true
		}
	}
}

// ofStruct judges a field of a local struct by where the struct as a whole comes
// from: a parameter leaves it to the caller, a result that is fetched anew for
// each attempt to the function that made it.
func (s *slicer) ofStruct(fa *ssa.FieldAddr, fr *frame) bool {
	local, ok := fa.X.(*ssa.Alloc)
	if !ok {
		return false
	}
	for _, st := range fr.s.StoresTo(local) {
		if fetched(st.Val, fr) {
			s.fl.plug = true
			return true
		}
		if _, ok := st.Val.(*ssa.Parameter); ok {
			s.fl.fixed, s.fl.param = true, true
			return true
		}
	}
	return false
}

// fetched reports whether a struct is what a call yields anew for each attempt,
// which may be another one each time. One that a helper is given is what its
// caller hands over.
func fetched(v ssa.Value, fr *frame) bool {
	switch v := v.(type) {
	case *ssa.Call, *ssa.Extract:
		return fr.l == nil || fr.l.Contains(v.(ssa.Instruction))
	case *ssa.Parameter:
		a := fr.argument(v)
		return a != nil && fetched(a, fr.up)
	case *ssa.UnOp:
		local, ok := v.X.(*ssa.Alloc)
		return ok && slices.ContainsFunc(fr.s.StoresTo(local), func(st *ssa.Store) bool {
			_, copied := st.Val.(*ssa.UnOp) // of another variable, which is not followed
			return !copied && fetched(st.Val, fr)
		})
	}
	return false
}

// indexed judges an element of a table: chosen by a varying index it grows, as
// in delays[attempt]. A constant index is one constant wait.
// The order of a table is not checked: a table of waits that does not grow is
// rare.
func (s *slicer) indexed(table, index ssa.Value, fr *frame) {
	switch {
	case dataflow.IsConst(index):
		s.fl.fixed = true
	// The table itself is said to be random, so its entries are.
	case jitterWord.MatchString(dataflow.ValueName(table)):
		s.fl.jitter = true
	default:
		s.fl.growing = true
	}
}

// originCall returns the call that produced the struct or pointer v, or the error
// that v was found in, or nil. A handful of steps is enough for resp.Header and
// result.After.
func originCall(v ssa.Value) *ssa.Call {
	for range 8 {
		switch x := v.(type) {
		case *ssa.Call:
			err, _ := dataflow.Sought(x.Common())
			if err == nil {
				return x
			}
			v = err
		case *ssa.Alloc: // the target of errors.As
			if v = soughtIn(x); v == nil {
				return nil
			}
		case *ssa.Extract, *ssa.UnOp, *ssa.FieldAddr, *ssa.Field, *ssa.TypeAssert:
			v = dataflow.Operand(x)
		case *ssa.Phi:
			for _, e := range x.Edges {
				if c, ok := e.(*ssa.Extract); ok {
					if k, ok := c.Tuple.(*ssa.Call); ok {
						return k
					}
				}
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// soughtIn returns the error in which errors.As looks for what it leaves in a
// variable, or nil.
func soughtIn(target *ssa.Alloc) ssa.Value {
	for m := range dataflow.Refs[*ssa.MakeInterface](target) {
		for c := range dataflow.Refs[*ssa.Call](m) {
			if err, _ := dataflow.Sought(c.Common()); err != nil {
				return err
			}
		}
	}
	return nil
}

// escapesInLoop reports whether the address of a variable is handed to a call
// inside l, which may change it, or to a closure that does. l is nil for helpers,
// in which any call counts.
func escapesInLoop(addr ssa.Value, l *dataflow.Loop) bool {
	for ref := range dataflow.Refs[ssa.Instruction](addr) {
		escapes := false
		switch r := ref.(type) {
		case *ssa.Call, *ssa.MakeInterface:
			escapes = l == nil || l.Contains(r)
		case *ssa.MakeClosure:
			escapes = dataflow.Assigns(r, addr)
		}
		if escapes {
			return true
		}
	}
	return false
}
