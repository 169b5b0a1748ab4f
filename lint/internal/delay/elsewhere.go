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

// held gathers the functions that a value is known to hold; open says that it may
// hold others, which come from the package's users.
type held struct {
	s    *slicer
	fns  []*ssa.Function
	open bool
}

// functions returns the functions that a value is known to hold: those that the
// package stores in the field or the variable, and what its constructors of
// functions return; all says that it can hold no other.
func (s *slicer) functions(v ssa.Value, fr *frame, depth int) (fns []*ssa.Function, all bool) {
	h := &held{s: s}
	h.add(v, fr, depth)
	return h.fns, !h.open
}

// add follows a value to the functions that it holds, five steps deep. Its steps
// count as those of the slice.
func (h *held) add(v ssa.Value, fr *frame, depth int) {
	if h.s.steps++; depth > 5 || h.s.steps > maxSteps {
		h.open = true
		return
	}
	if fn, _ := dataflow.FuncValue(v); fn != nil {
		h.function(v, fn, fr)
		return
	}
	switch v := v.(type) {
	case *ssa.Const: // nil, which no caller reaches
	case *ssa.ChangeType, *ssa.ChangeInterface:
		h.add(dataflow.Operand(v), fr, depth+1)
	case *ssa.Phi:
		for _, e := range v.Edges {
			if e != ssa.Value(v) {
				h.add(e, fr, depth+1)
			}
		}
	case *ssa.Parameter:
		if a := fr.argument(v); a != nil {
			h.add(a, fr.up, depth+1)
			return
		}
		h.open = true
	case *ssa.Call:
		h.made(v, fr, depth)
	case *ssa.Field:
		h.stored(v, fr, depth)
	case *ssa.UnOp:
		for _, st := range fr.s.StoresTo(v.X) {
			h.add(st.Val, fr, depth+1)
		}
		if fa, ok := v.X.(*ssa.FieldAddr); ok {
			h.stored(fa, fr, depth)
		}
		_, isCell := v.X.(*ssa.Alloc)
		h.open = h.open || !isCell
	default:
		h.open = true
	}
}

// function notes a function whose body can be read. The arguments of a method
// value leave the receiver out.
func (h *held) function(v ssa.Value, fn *ssa.Function, fr *frame) {
	mc, isClosure := dataflow.Strip(v).(*ssa.MakeClosure)
	if isClosure && mc.Fn != ssa.Value(fn) || len(fn.Blocks) == 0 || !fr.s.Known.Own(fn) {
		h.open = true
		return
	}
	if !slices.Contains(h.fns, fn) {
		h.fns = append(h.fns, fn)
	}
}

// made adds what a constructor of functions returns.
func (h *held) made(c *ssa.Call, fr *frame, depth int) {
	fn := fr.s.Known.Body(c.Common())
	if fn == nil {
		h.open = true
		return
	}
	sub := &frame{s: fr.s.Known.Scope(fn), args: c.Common().Args, up: fr, depth: fr.depth + 1}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		if len(ret.Results) == 1 {
			h.add(ret.Results[0], sub, depth+1)
		}
	}
}

// stored adds what other functions of the package store in a field. Users may
// store something else.
func (h *held) stored(field ssa.Value, fr *frame, depth int) {
	h.open = true
	for _, st := range fr.s.Known.FieldStores(dataflow.FieldVar(field)) {
		if st.Parent() != fr.s.Fn {
			h.add(st.Val, &frame{s: fr.s.Known.Scope(st.Parent()), depth: fr.depth + 1}, depth+1)
		}
	}
}

// setting reports whether a call yields a setting whatever its body: what the
// environment says does not change between attempts.
func setting(c *ssa.Call) bool {
	return dataflow.Calls(c, "os", "Getenv", "LookupEnv")
}
