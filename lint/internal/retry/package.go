package retry

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/eval"
)

// Package is what is known of the package at hand. It is made once and is not safe
// for concurrent use.
type Package struct {
	Pass  *analysis.Pass
	SSA   *ssa.Package
	Funcs []*ssa.Function // with bodies, literals included, in the order of the source

	callers map[*ssa.Function][]*ssa.Call
	impl    map[*types.Func]*ssa.Function
	init    map[string]eval.Value
	reach   map[*ssa.Function]Boundary
	lively  map[*ssa.Function]bool
	heavy   map[*ssa.Function]bool // too much for a summary
}

// newPackage gathers the functions of a package and their callers.
func newPackage(pass *analysis.Pass, pkg *ssa.Package) *Package {
	p := &Package{Pass: pass, SSA: pkg, callers: map[*ssa.Function][]*ssa.Call{}, impl: map[*types.Func]*ssa.Function{}, reach: map[*ssa.Function]Boundary{}, lively: map[*ssa.Function]bool{}, heavy: map[*ssa.Function]bool{}}
	for _, f := range pass.Files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				p.add(pkg.Prog.FuncValue(pass.TypesInfo.Defs[d.Name].(*types.Func)))
			}
		}
	}
	if in := pkg.Func("init"); in != nil { // literals that variables of the package hold
		for _, lit := range in.AnonFuncs {
			p.add(lit)
		}
	}
	slices.SortFunc(p.Funcs, func(a, b *ssa.Function) int { return int(a.Pos() - b.Pos()) })
	for _, fn := range p.Funcs {
		for c := range Calls(fn) {
			if callee := eval.Static(c.Common()); callee != nil {
				p.callers[callee] = append(p.callers[callee], c)
			}
		}
	}
	return p
}

// add notes a function and the literals in it.
func (p *Package) add(fn *ssa.Function) {
	if len(fn.Blocks) > 0 {
		p.Funcs = append(p.Funcs, fn)
	}
	for _, lit := range fn.AnonFuncs {
		p.add(lit)
	}
}

// Callers are the calls of a function in the package.
func (p *Package) Callers(fn *ssa.Function) []*ssa.Call { return p.callers[fn] }

// Calls yields the calls of a function.
func Calls(fn *ssa.Function) func(func(*ssa.Call) bool) {
	return func(yield func(*ssa.Call) bool) {
		for _, b := range fn.Blocks {
			for _, in := range b.Instrs {
				if c, ok := in.(*ssa.Call); ok && !yield(c) {
					return
				}
			}
		}
	}
}

// mockWord marks types that stand in for others in tests.
var mockWord = regexp.MustCompile(`(?i)mock|fake|stub|noop|test`)

// Implementer implements eval.Library: the only type of the package that has the
// method, and is no stand-in for tests.
func (p *Package) Implementer(m *types.Func) *ssa.Function {
	if fn, ok := p.impl[m]; ok {
		return fn
	}
	p.impl[m] = nil
	recv := m.Signature().Recv()
	if recv == nil || !ablate.On("implementers") {
		return nil
	}
	iface, ok := recv.Type().Underlying().(*types.Interface)
	if !ok || m.Pkg() != p.SSA.Pkg || iface.NumMethods() == 0 {
		return nil
	}
	var found *ssa.Function
	scope := p.SSA.Pkg.Scope()
	for _, name := range scope.Names() {
		tn, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || tn.IsAlias() || mockWord.MatchString(name) || types.IsInterface(tn.Type()) || strings.HasSuffix(p.Pass.Fset.Position(tn.Pos()).Filename, "_test.go") {
			continue
		}
		t := types.NewPointer(tn.Type())
		if n, ok := tn.Type().(*types.Named); ok && n.TypeParams().Len() > 0 || !types.Implements(t, iface) {
			continue
		}
		sel := p.SSA.Prog.MethodSets.MethodSet(t).Lookup(m.Pkg(), m.Name())
		if sel == nil {
			continue
		}
		obj, _ := sel.Obj().(*types.Func)
		fn := p.SSA.Prog.FuncValue(obj)
		if fn == nil || len(fn.Blocks) == 0 || found != nil {
			return nil
		}
		found = fn
	}
	if found != nil && wraps(found, recv.Type()) {
		return nil // what it calls in turn is another one
	}
	p.impl[m] = found
	return found
}

// wraps reports whether the receiver of a method holds another value of the interface.
func wraps(fn *ssa.Function, iface types.Type) bool {
	t := fn.Signature.Recv().Type()
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if types.Identical(f.Type(), iface) {
			return true
		}
	}
	return false
}

// Init implements eval.Library: what the variables of the package hold at its
// start, but for those that a function sets later.
func (p *Package) Init() map[string]eval.Value {
	if p.init != nil {
		return p.init
	}
	p.init = map[string]eval.Value{}
	fn := p.SSA.Func("init")
	if fn == nil || len(fn.Blocks) == 0 || !ablate.On("init") {
		return p.init
	}
	keep := map[string]eval.Value{}
	m := &eval.Machine{Lib: p, Fn: fn, Name: "init", Keep: keep}
	m.Run()
	set := p.assigned()
	for cell, v := range keep {
		root := cell
		if i := strings.IndexAny(cell[strings.LastIndexByte(cell, '/')+1:], "["); i >= 0 {
			root = cell[:strings.LastIndexByte(cell, '/')+1+i]
		}
		if !set[root] && !slices.ContainsFunc(setPrefixes(root), func(s string) bool { return set[s] }) {
			p.init[cell] = v
		}
	}
	return p.init
}

// setPrefixes are the cells around one.
func setPrefixes(cell string) (all []string) {
	for i := len(cell) - 1; i > strings.LastIndexByte(cell, '/'); i-- {
		if cell[i] == '.' {
			all = append(all, cell[:i])
		}
	}
	return all
}

// assigned are the cells of variables that functions of the package write.
func (p *Package) assigned() map[string]bool {
	set := map[string]bool{}
	for _, m := range p.SSA.Members { // which whoever uses the package may set
		if g, ok := m.(*ssa.Global); ok && g.Object() != nil && g.Object().Exported() {
			set[varCell(g)] = true
		}
	}
	for _, fn := range p.Funcs {
		if strings.HasPrefix(fn.Name(), "init") && fn.Signature.Recv() == nil && fn.Parent() == nil {
			continue
		}
		for _, b := range fn.Blocks {
			for _, in := range b.Instrs {
				switch in := in.(type) {
				case *ssa.Store:
					if cell := varCell(in.Addr); cell != "" {
						set[cell] = true
					}
				case *ssa.MapUpdate:
					if u, ok := in.Map.(*ssa.UnOp); ok {
						if cell := varCell(u.X); cell != "" {
							set[cell] = true
						}
					}
				}
			}
		}
	}
	return set
}

// varCell is the cell of a variable of a package, or of a field of one.
func varCell(v ssa.Value) string {
	switch v := v.(type) {
	case *ssa.Global:
		return "var " + v.Pkg.Pkg.Path() + "." + v.Name()
	case *ssa.FieldAddr:
		if outer := varCell(v.X); outer != "" {
			return outer + "." + v.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct).Field(v.Field).Name()
		}
	}
	return ""
}

// Lively implements eval.Library.
func (p *Package) Lively(fn *ssa.Function) bool {
	if is, ok := p.lively[fn]; ok {
		return is
	}
	p.lively[fn] = false
	is := false
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case *ssa.Store:
				fa, ok := in.Addr.(*ssa.FieldAddr)
				if ok {
					_, ok = fa.X.(*ssa.Parameter)
				}
				is = is || ok
			case *ssa.Select:
				is = is || in.Blocking
			case *ssa.UnOp:
				is = is || in.Op == token.ARROW
			case *ssa.Call:
				if letsTimePass(in.Common()) {
					is = true
				} else if callee := eval.Static(in.Common()); callee != nil && len(callee.Blocks) > 0 {
					is = is || p.Lively(callee)
				}
			}
		}
	}
	p.lively[fn] = is
	return is
}

// Remote implements eval.Library.
func (p *Package) Remote(c *ssa.CallCommon) bool { return p.BoundaryOf(c) == Remote }
