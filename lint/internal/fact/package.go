package fact

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// Funcs returns the functions of the package that have bodies, literals
// included, in source order. A package without code that is judged has none.
func (s *Table) Funcs() []*ssa.Function {
	if s.funcs != nil || s.pkg == nil {
		return s.funcs
	}
	// Methods are no members of the package, so the syntax leads to them.
	for _, file := range s.pass.Files {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			obj, _ := s.pass.TypesInfo.Defs[decl.Name].(*types.Func)
			if obj == nil {
				continue
			}
			if fn := s.pkg.Prog.FuncValue(obj); fn != nil {
				s.addFunc(fn)
			}
		}
	}
	// Literals of package variables belong to init.
	if init := s.pkg.Func("init"); init != nil {
		for _, lit := range init.AnonFuncs {
			s.addFunc(lit)
		}
	}
	return s.funcs
}

// addFunc adds a function and the literals in it. One without a body, such as
// one in assembly, is left out.
func (s *Table) addFunc(fn *ssa.Function) {
	if len(fn.Blocks) == 0 {
		return
	}
	s.funcs = append(s.funcs, fn)
	for _, lit := range fn.AnonFuncs {
		s.addFunc(lit)
	}
}

// index holds what the functions of a package do to things that outlive a call.
// It is made once, when the first question is asked.
type index struct {
	stores map[*types.Var][]*ssa.Store         // to the fields of structs
	made   map[*types.Named][]types.Type       // the types that become an interface of the package
	calls  map[*ssa.Function][]*ssa.CallCommon // of functions of the package
	sites  map[*ssa.Function][]*ssa.Call       // those that are neither deferred nor in a goroutine
	taken  map[*ssa.Function]bool              // functions that are used as values
}

// indexed returns the index of the package.
func (s *Table) indexed() *index {
	if s.index != nil {
		return s.index
	}
	s.index = &index{
		stores: map[*types.Var][]*ssa.Store{}, made: map[*types.Named][]types.Type{},
		calls: map[*ssa.Function][]*ssa.CallCommon{}, sites: map[*ssa.Function][]*ssa.Call{}, taken: map[*ssa.Function]bool{},
	}
	funcs := slices.Clip(s.Funcs())
	if s.pkg != nil {
		if init := s.pkg.Func("init"); init != nil {
			funcs = append(funcs, init) // the literals of package variables
		}
	}
	for _, fn := range funcs {
		for in := range dataflow.Instrs[ssa.Instruction](fn) {
			s.index.note(s, in)
		}
	}
	return s.index
}

// note adds one instruction to the index.
func (x *index) note(s *Table, in ssa.Instruction) {
	var called ssa.Value
	switch in := in.(type) {
	case *ssa.Store:
		if v := dataflow.FieldVar(in.Addr); v != nil {
			x.stores[v] = append(x.stores[v], in)
		}
	case *ssa.MakeInterface:
		if n, ok := types.Unalias(in.Type()).(*types.Named); ok {
			x.made[n] = append(x.made[n], in.X.Type())
		}
	case *ssa.ChangeInterface: // whatever kind the other interface holds
		if n, ok := types.Unalias(in.Type()).(*types.Named); ok {
			x.made[n] = append(x.made[n], in.X.Type())
		}
	case *ssa.TypeAssert:
		if n, ok := types.Unalias(in.AssertedType).(*types.Named); ok && types.IsInterface(n) {
			x.made[n] = append(x.made[n], in.X.Type())
		}
	case ssa.CallInstruction:
		if fn := s.Body(in.Common()); fn != nil {
			called = in.Common().Value
			x.calls[fn] = append(x.calls[fn], in.Common())
			if c, ok := in.(*ssa.Call); ok {
				x.sites[fn] = append(x.sites[fn], c)
			}
		}
	}
	for _, op := range in.Operands(nil) {
		if *op == called {
			continue
		}
		if v, ok := (*op).(*ssa.Function); ok {
			x.taken[v] = true
			if m := dataflow.BoundMethod(v); m != nil {
				x.taken[m] = true
			}
		}
	}
}

// FieldStores returns what the package stores in a field of a struct, through
// whatever pointer: a method that raises a backoff, the default that a
// constructor sets. Structs of other packages are changed elsewhere too.
func (s *Table) FieldStores(field *types.Var) []*ssa.Store {
	if field == nil || field.Pkg() != s.pass.Pkg {
		return nil
	}
	return s.indexed().stores[field]
}

// Implementation returns the method behind a call through an interface of the
// package when all types that the package makes into it have the same one, and nil
// otherwise: there is one type, or several embed one that has the method.
func (s *Table) Implementation(c *ssa.CallCommon) *ssa.Function {
	if !c.IsInvoke() || s.pkg == nil {
		return nil
	}
	n, ok := types.Unalias(c.Value.Type()).(*types.Named)
	if !ok || n.Obj().Pkg() != s.pass.Pkg {
		return nil
	}
	var only *types.Func
	for _, t := range s.indexed().made[n] {
		obj, _, _ := types.LookupFieldOrMethod(t, true, s.pass.Pkg, c.Method.Name())
		m, ok := obj.(*types.Func)
		if !ok || types.IsInterface(t) || only != nil && only != m.Origin() {
			return nil
		}
		only = m.Origin()
	}
	if only == nil {
		return nil
	}
	fn := s.pkg.Prog.FuncValue(only)
	if fn == nil || len(fn.Blocks) == 0 || !s.Own(fn) {
		return nil
	}
	return fn
}

// Sites returns the calls of a function of the package that are neither deferred
// nor in a goroutine, with their places in the functions that make them.
func (s *Table) Sites(fn *ssa.Function) []*ssa.Call {
	if s.pkg == nil {
		return nil
	}
	return s.indexed().sites[fn]
}

// Implementing returns the summary of the method behind a call through an
// interface, as of a method value: the receiver is no argument of the call. It is
// nil when the method is not known.
func (s *Table) Implementing(c *ssa.CallCommon) *Summary {
	if fn := s.Implementation(c); fn != nil {
		return s.Local(fn).bound()
	}
	return nil
}

// Callees returns the functions of the package that fn calls, and whose bodies can
// be read.
func (s *Table) Callees(fn *ssa.Function) (fns []*ssa.Function) {
	for c := range dataflow.Instrs[*ssa.Call](fn) {
		if g := s.Body(c.Common()); g != nil {
			fns = append(fns, g)
		}
	}
	return fns
}

// Callers returns all calls of a function of the package, and whether they are
// all that there can be: no other package may name it, and it is no value that
// anything else could call.
func (s *Table) Callers(fn *ssa.Function) (calls []*ssa.CallCommon, all bool) {
	if s.pkg == nil {
		return nil, false
	}
	x := s.indexed()
	obj, _ := fn.Object().(*types.Func)
	hidden := obj == nil || !obj.Exported()
	return x.calls[fn], hidden && !x.taken[fn]
}
