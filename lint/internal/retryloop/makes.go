package retryloop

import (
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
)

// makes returns the kinds of errors that a function may return, as far as its
// code and the facts about its callees say: types of errors, variables, and bool
// fields of such types that are set to a constant.
func (p *finders) makes(fn *ssa.Function) (kinds []string) {
	if fn == nil {
		return nil
	}
	m := maker{p: p, s: p.Known.Scope(fn), seen: map[ssa.Value]bool{}}
	for ret := range dataflow.Instrs[*ssa.Return](fn) {
		if v := errorResult(ret); v != nil {
			m.visit(v)
		}
	}
	return m.kinds
}

// errorResult returns the error among the results of a return: the last one, or
// nil.
func errorResult(ret *ssa.Return) ssa.Value {
	if len(ret.Results) == 0 {
		return nil
	}
	v := ret.Results[len(ret.Results)-1]
	if !dataflow.ImplementsError(v.Type()) {
		return nil
	}
	return v
}

// kindsOf returns the kinds of errors that v may be.
func (p *finders) kindsOf(s *fact.Scope, v ssa.Value) []string {
	m := maker{p: p, s: s, seen: map[ssa.Value]bool{}}
	m.visit(v)
	return m.kinds
}

// maker follows an error back to what made it.
type maker struct {
	p     *finders
	s     *fact.Scope
	seen  map[ssa.Value]bool
	kinds []string
}

// visit adds the kinds that v may be. Forty values bound the search.
func (m *maker) visit(v ssa.Value) {
	if v == nil || m.seen[v] || len(m.seen) > 40 || dataflow.IsNil(v) {
		return
	}
	m.seen[v] = true
	if k := dataflow.VariableKind(v); k != "" {
		m.add(k)
		return
	}
	switch v := v.(type) {
	case *ssa.MakeInterface:
		m.add(dataflow.TypeKind(v.X.Type()))
		m.visit(v.X)
	case *ssa.ChangeInterface, *ssa.ChangeType, *ssa.TypeAssert:
		m.visit(dataflow.Operand(v))
	case *ssa.Extract:
		m.visit(v.Tuple)
	case *ssa.Phi:
		for _, e := range v.Edges {
			m.visit(e)
		}
	case *ssa.Alloc: // &PermanentError{...}
		if dataflow.ImplementsError(v.Type()) {
			m.literal(v)
		}
		for _, st := range m.s.StoresTo(v) {
			m.visit(st.Val)
		}
	case *ssa.UnOp:
		for _, st := range m.s.StoresTo(v.X) {
			m.visit(st.Val)
		}
		if a, ok := v.X.(*ssa.Alloc); ok {
			m.literal(a)
		}
	case *ssa.Call:
		if sum := m.p.Known.Of(v.Common()); sum != nil {
			for _, k := range sum.Errors {
				m.add(k)
			}
		}
		for _, e := range dataflow.Wrapped(v) {
			m.visit(e)
		}
	}
}

// literal adds the kind of a struct that is made in place, and its bool fields.
func (m *maker) literal(a *ssa.Alloc) {
	kind := dataflow.TypeKind(a.Type())
	s, ok := a.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct)
	if !ok || kind == "" || !dataflow.ImplementsError(a.Type()) && !dataflow.ImplementsError(a.Type().Underlying().(*types.Pointer).Elem()) {
		return
	}
	m.add(kind)
	for i := range s.NumFields() {
		if !types.Identical(s.Field(i).Type(), types.Typ[types.Bool]) {
			continue
		}
		value := "false"
		for fa := range dataflow.Refs[*ssa.FieldAddr](a) {
			if fa.Field != i {
				continue
			}
			for st := range dataflow.Refs[*ssa.Store](fa) {
				if b, ok := dataflow.ConstBool(st.Val); !ok {
					value = ""
				} else if b {
					value = "true"
				}
			}
		}
		if value != "" {
			m.add(kind + "." + s.Field(i).Name() + "=" + value)
		}
	}
}

// add notes a kind. Those of package errors and fmt say nothing.
func (m *maker) add(kind string) {
	if !strings.HasPrefix(kind, "errors.") && !strings.HasPrefix(kind, "fmt.") {
		m.kinds = fact.AddKind(m.kinds, kind)
	}
}

// ended reports whether a helper certainly, or for all that can be seen, makes no
// further attempt after its callback has returned by ret: the failure is of a
// kind that ends the retries, or of none that is tried again.
func (p *finders) ended(h *fact.Retrier, ret *ssa.Return) bool {
	for i, v := range ret.Results {
		b, ok := dataflow.ConstBool(v)
		if !ok {
			continue
		}
		kind := "#" + strconv.Itoa(i)
		if !b {
			kind += "=false"
		}
		if slices.Contains(h.Ends, kind) {
			return true
		}
	}
	v := errorResult(ret)
	if v == nil || dataflow.IsNil(v) {
		return false
	}
	if slices.Contains(h.Ends, anyError) {
		return true
	}
	if h.Library != "" && p.madeBy(h.Library, v, ret.Parent(), 0) {
		return true
	}
	if len(h.Ends) == 0 && len(h.Only) == 0 {
		return false
	}
	kinds := p.kindsOf(p.Known.Scope(ret.Parent()), v)
	if slices.Contains(kinds, fact.OtherKinds) {
		return true // which may be of a kind that ends them
	}
	has := func(list []string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(list, k) })
	}
	return has(h.Ends) || len(h.Only) > 0 && !has(h.Only)
}

// madeBy reports whether a function of a library may have made the error v of
// fn: three calls deep. There is hardly another use for such an error than to
// say that it is final.
func (p *finders) madeBy(library string, v ssa.Value, fn *ssa.Function, depth int) bool {
	return slices.ContainsFunc(p.Known.Scope(fn).Origins(v, nil), func(c *ssa.Call) bool {
		if dataflow.CalleePkg(c.Common()) == library {
			return true
		}
		g := p.Known.Body(c.Common())
		if g == nil || depth >= 3 {
			return false
		}
		for ret := range dataflow.Instrs[*ssa.Return](g) {
			if v := errorResult(ret); v != nil && p.madeBy(library, v, g, depth+1) {
				return true
			}
		}
		return false
	})
}
