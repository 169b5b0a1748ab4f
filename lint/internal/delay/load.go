package delay

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// load follows a read of a variable to what is stored in it. Stores in the loop
// come first: they are what the next attempt sees. A cell without any goes back
// to what it began with, and what is written elsewhere, such as a field of a
// configuration, stays as it is.
func (s *slicer) load(v *ssa.UnOp, fr *frame) {
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
	if entry, open := s.stack[addr]; open {
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
	stores := fr.s.StoresTo(addr)
	s.stack[addr] = s.arith
	defer delete(s.stack, addr)
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
	if _, isAlloc := addr.(*ssa.Alloc); isAlloc {
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
	}
	if _, free := addr.(*ssa.FreeVar); free && variableGrows(addr.(*ssa.FreeVar)) {
		s.fl.plug = true
		return
	}
	if fa, ok := addr.(*ssa.FieldAddr); ok && s.ofStruct(fa, fr) {
		return
	}
	s.fl.fixed = true
}

// ofStruct judges a field of a local struct by where the struct as a whole comes
// from: a parameter leaves it to the caller, a result that is fetched anew for
// each attempt to whoever made it.
func (s *slicer) ofStruct(fa *ssa.FieldAddr, fr *frame) bool {
	local, ok := fa.X.(*ssa.Alloc)
	if !ok {
		return false
	}
	for _, st := range fr.s.StoresTo(local) {
		switch st.Val.(type) {
		case *ssa.Parameter:
			s.fl.fixed, s.fl.param = true, true
			return true
		case *ssa.Call, *ssa.Extract:
			if fr.l == nil || fr.l.Contains(st) {
				s.fl.plug = true
				return true
			}
		}
	}
	return false
}

// indexed judges an element of a table: chosen by a varying index it grows, as
// in delays[attempt]. A constant index is one constant wait.
func (s *slicer) indexed(table, index ssa.Value, fr *frame) {
	if _, isConst := index.(*ssa.Const); isConst {
		s.fl.fixed = true
		return
	}
	if jitterWord.MatchString(dataflow.ValueName(table)) {
		s.fl.jitter = true
		return
	}
	s.fl.growing = true
}

// originCall returns the call that produced the struct or pointer v, or nil. A
// handful of steps is enough for resp.Header and result.After.
func originCall(v ssa.Value) *ssa.Call {
	for range 6 {
		switch x := v.(type) {
		case *ssa.Call:
			return x
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.UnOp:
			v = x.X
		case *ssa.FieldAddr:
			v = x.X
		case *ssa.Field:
			v = x.X
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

// escapesInLoop reports whether the address of a variable is handed to a call
// inside l, which may change it.
func escapesInLoop(addr ssa.Value, l *dataflow.Loop) bool {
	if addr.Referrers() == nil {
		return false
	}
	for _, ref := range *addr.Referrers() {
		switch r := ref.(type) {
		case *ssa.Call:
			if l == nil || l.Contains(r) {
				return true
			}
		case *ssa.MakeInterface:
			if l == nil || l.Contains(r) {
				return true
			}
		case *ssa.MakeClosure:
			fn := r.Fn.(*ssa.Function)
			for i, b := range r.Bindings {
				if b == addr && i < len(fn.FreeVars) && dataflow.StoredIn(fn, fn.FreeVars[i]) {
					return true
				}
			}
		}
	}
	return false
}

// variableGrows reports whether the function that captured a variable changes
// it: then the wait may grow from call to call, and is not judged.
func variableGrows(v *ssa.FreeVar) bool {
	return dataflow.StoredIn(v.Parent(), v)
}
