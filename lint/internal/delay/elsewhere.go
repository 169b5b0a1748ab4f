package delay

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// elsewhere judges a field by what other functions of the package store in it: a
// backoff that keeps its state in a struct is raised by one method and read by
// another. It reports whether that settles the verdict.
//
// What a constructor or a setter stores is a setting: it says how long the wait
// is, and not that it changes. Only a store that computes the field from itself
// changes it, and only when it runs between the attempts. Randomness counts from
// wherever it comes.
func (s *slicer) elsewhere(fa *ssa.FieldAddr, fr *frame) bool {
	field := dataflow.FieldVar(fa)
	if field == nil || s.fields[field] || fr.depth >= 4 {
		return false
	}
	s.fields[field] = true
	defer delete(s.fields, field)
	for _, st := range fr.s.Known.FieldStores(field) {
		if st.Parent() == fr.s.Fn {
			continue
		}
		sub := newSlicer(nil)
		sub.fields[field], sub.steps = true, s.steps
		sub.walk(st.Val, &frame{s: fr.s.Known.Scope(st.Parent()), depth: fr.depth + 1})
		s.steps = sub.steps
		s.fl.jitter = s.fl.jitter || sub.fl.jitter
		s.fl.equal = s.fl.equal || sub.fl.equal
		if !sub.selfMade && !(sub.fl.plug && !created(st)) {
			continue
		}
		switch between, known := s.runsBetween(st.Parent(), fr); {
		case !known && sub.selfMade:
			s.fl.plug = true // by whom and how often, the callers know
		case between && sub.selfMade:
			s.fl.growing = true
		case between:
			s.fl.plug = true
		}
	}
	return s.fl.growing || s.fl.jitter || s.fl.equal || s.fl.plug
}

// created reports whether a store fills in a struct that its function has just
// made.
func created(st *ssa.Store) bool {
	v := st.Addr
	for range 6 {
		switch x := v.(type) {
		case *ssa.FieldAddr:
			v = x.X
		case *ssa.Alloc:
			return true
		default:
			return false
		}
	}
	return false
}

// runsBetween reports whether fn may run between two attempts: something in the
// loop, or in the function that calls itself, leads to it within three calls.
// It is not known where the wait is judged without its loop.
func (s *slicer) runsBetween(fn *ssa.Function, fr *frame) (between, known bool) {
	top := fr
	for top.up != nil {
		top = top.up
	}
	if top.l == nil && top.again == nil {
		return false, false
	}
	if s.between == nil {
		s.between = map[*ssa.Function]bool{}
		s.reach(top, top.s.Fn, top.l, 0)
	}
	return s.between[fn], true
}

// reach notes the functions that the calls in a loop, or in all of fn, lead to.
func (s *slicer) reach(top *frame, fn *ssa.Function, l *dataflow.Loop, depth int) {
	for c := range dataflow.InstrsIn[ssa.CallInstruction](fn, l) {
		callee := top.s.Known.Body(c.Common())
		if callee == nil {
			callee = top.s.Known.Implementation(c.Common())
		}
		if callee == nil || s.between[callee] || len(s.between) > 200 {
			continue
		}
		s.between[callee] = true
		if depth < 2 {
			s.reach(top, callee, nil, depth+1)
		}
	}
}

// value judges the result of a call through an interface or a function value,
// whose body is known when the package has just one that it can be, or a default
// for what its users leave out. A policy of the users' own may be any policy, so
// that the verdict rests on the default alone.
func (s *slicer) value(c *ssa.Call, fr *frame) {
	com := c.Common()
	if com.IsInvoke() {
		fn := fr.s.Known.Implementation(com)
		if fn == nil {
			s.fl.plug = true
			return
		}
		// Of an interface that no other package can name there is no other.
		s.fl.byDefault = s.fl.byDefault || types.Unalias(com.Value.Type()).(*types.Named).Obj().Exported()
		s.enter(fn, append([]ssa.Value{com.Value}, com.Args...), fr)
		return
	}
	fns, all := s.functions(com.Value, fr, 0)
	if len(fns) == 0 || fr.depth >= 4 {
		s.fl.plug = true
		return
	}
	s.fl.byDefault = s.fl.byDefault || !all
	for _, fn := range fns {
		s.enter(fn, com.Args, fr)
	}
}

// functions returns the functions that a value is known to hold: those that the
// package stores in the field or the variable, and what its constructors of
// functions return; all says that it can hold no other. What is left out comes
// from the package's users.
func (s *slicer) functions(v ssa.Value, fr *frame, depth int) (fns []*ssa.Function, all bool) {
	if s.steps++; depth > 5 || s.steps > maxSteps {
		return nil, false
	}
	all = true
	add := func(v ssa.Value, fr *frame) {
		more, whole := s.functions(v, fr, depth+1)
		all = all && whole
		for _, fn := range more {
			if !slices.Contains(fns, fn) {
				fns = append(fns, fn)
			}
		}
	}
	stored := func(field ssa.Value) {
		all = false
		for _, st := range fr.s.Known.FieldStores(dataflow.FieldVar(field)) {
			if st.Parent() != fr.s.Fn {
				add(st.Val, &frame{s: fr.s.Known.Scope(st.Parent()), depth: fr.depth + 1})
			}
		}
	}
	switch v := v.(type) {
	case *ssa.Const: // nil, which no caller reaches
		return nil, true
	case *ssa.Function:
		if len(v.Blocks) > 0 && fr.s.Known.Own(v) {
			return []*ssa.Function{v}, true
		}
	case *ssa.MakeClosure:
		fn := v.Fn.(*ssa.Function)
		if dataflow.BoundMethod(fn) == nil { // the arguments of one leave the receiver out
			return []*ssa.Function{fn}, true
		}
	case *ssa.ChangeType, *ssa.ChangeInterface:
		add(dataflow.Operand(v), fr)
		return fns, all
	case *ssa.Phi:
		for _, e := range v.Edges {
			if e != ssa.Value(v) {
				add(e, fr)
			}
		}
		return fns, all
	case *ssa.Parameter:
		if a := fr.argument(v); a != nil {
			add(a, fr.up)
			return fns, all
		}
	case *ssa.Call:
		if fn := fr.s.Known.Body(v.Common()); fn != nil {
			sub := &frame{s: fr.s.Known.Scope(fn), args: v.Common().Args, up: fr, depth: fr.depth + 1}
			for ret := range dataflow.Instrs[*ssa.Return](fn) {
				if len(ret.Results) == 1 {
					add(ret.Results[0], sub)
				}
			}
			return fns, all
		}
	case *ssa.Field:
		stored(v)
		return fns, false
	case *ssa.UnOp:
		for _, st := range fr.s.StoresTo(v.X) {
			add(st.Val, fr)
		}
		if fa, ok := v.X.(*ssa.FieldAddr); ok {
			stored(fa)
		}
		_, isCell := v.X.(*ssa.Alloc)
		return fns, all && isCell
	}
	return nil, false
}

// setting reports whether a call yields a setting whatever its body: what the
// environment says does not change between attempts.
func setting(c *ssa.Call) bool {
	return dataflow.Calls(c, "os", "Getenv", "LookupEnv")
}
