package table

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// Match is one place that an entry judges.
type Match struct {
	Entry *Entry
	Node  ast.Node
	Call  *ast.CallExpr  // nil for what is not a call
	Value constant.Value // of the argument that matters, or of what the field is set to; nil where it is not constant
	Scope ast.Decl       // the declaration around it
}

// Find returns the places that the entries of verdict v match. A library does not
// use itself: where it builds one of its functions on another, its callers have
// yet to say what they want.
func Find(pass *analysis.Pass, v Verdict) []Match {
	m := matcher{pass: pass, called: map[*ast.Ident]bool{}}
	for _, e := range all() {
		if e.Verdict == v && e.imported(pass.Pkg) && !e.Covers(pass.Pkg.Path()) {
			m.active = append(m.active, e)
		}
	}
	// Most packages import no such library, and are done with that.
	if len(m.active) == 0 {
		return nil
	}
	for _, f := range pass.Files {
		for _, d := range f.Decls {
			m.scope = d
			for n := range ast.Preorder(d) {
				m.visit(n)
			}
		}
	}
	return m.found
}

// imported reports whether a package imports one that e is about.
func (e *Entry) imported(pkg *types.Package) bool {
	return slices.ContainsFunc(pkg.Imports(), func(imp *types.Package) bool { return e.Covers(imp.Path()) })
}

// matcher walks the declarations of a package.
type matcher struct {
	pass   *analysis.Pass
	active []*Entry
	scope  ast.Decl            // the declaration that is walked
	called map[*ast.Ident]bool // names of functions that are called there, and not used as values
	found  []Match
}

// visit looks at one node. A call is seen before the name of its function.
func (m *matcher) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		if id := calledName(n.Fun); id != nil {
			m.called[id] = true
			pkg, name := functionName(m.pass.TypesInfo.Uses[id])
			m.use(call, pkg, name, Match{Node: n, Call: n})
		}
	case *ast.SelectorExpr:
		if !m.called[n.Sel] {
			pkg, name := functionName(m.pass.TypesInfo.Uses[n.Sel])
			m.use(value, pkg, name, Match{Node: n})
		}
	case *ast.CompositeLit:
		pkg, name := typeName(m.pass.TypesInfo.TypeOf(n))
		m.use(literal, pkg, name, Match{Node: n})
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			sel, ok := ast.Unparen(l).(*ast.SelectorExpr)
			if !ok || len(n.Rhs) != len(n.Lhs) {
				continue
			}
			pkg, name := typeName(m.pass.TypesInfo.TypeOf(sel.X))
			m.use(field, pkg, name+"."+sel.Sel.Name, Match{Node: sel, Value: m.constant(n.Rhs[i])})
		}
	}
}

// use notes what the active entries say of a use of a package.
func (m *matcher) use(k kind, pkg, name string, found Match) {
	for _, e := range m.active {
		if e.kind != k || !e.Covers(pkg) || !e.judged.MatchString(name) {
			continue
		}
		found.Entry, found.Scope = e, m.scope
		if m.holds(&found) {
			m.found = append(m.found, found)
		}
	}
}

// constant returns the value of an expression, or nil.
func (m *matcher) constant(e ast.Expr) constant.Value { return m.pass.TypesInfo.Types[e].Value }

// calledName is the name of the function that an expression is, or nil: a literal
// has none. Instances are named by their generic function.
func calledName(e ast.Expr) *ast.Ident {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.IndexExpr:
		return calledName(e.X)
	case *ast.IndexListExpr:
		return calledName(e.X)
	}
	return nil
}

// functionName returns the package of a function, and its name as entries spell
// it: methods are "Type.Method", whether the receiver is a pointer or not. A
// variable of a package that holds a function counts as one. Anything else, such
// as the type in a conversion, has no name.
func functionName(obj types.Object) (pkg, name string) {
	switch obj := obj.(type) {
	case *types.Func:
		if recv := obj.Signature().Recv(); recv != nil {
			pkg, name = typeName(recv.Type())
			return pkg, name + "." + obj.Name()
		}
		return obj.Pkg().Path(), obj.Name()
	case *types.Var:
		if _, ok := obj.Type().Underlying().(*types.Signature); ok && obj.Parent() == obj.Pkg().Scope() {
			return obj.Pkg().Path(), obj.Name()
		}
	}
	return "", ""
}

// typeName returns the package and the name of a type, or of what it points to.
func typeName(t types.Type) (pkg, name string) {
	if t == nil {
		return "", ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return "", ""
	}
	return n.Obj().Pkg().Path(), n.Obj().Name()
}
