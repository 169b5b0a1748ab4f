package table

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/syntax"
)

// instead replaces the call by another expression of the same package. An argument
// that is named twice must not be computed by a call.
func (m Match) instead(p *rule.Pass, template string) []analysis.TextEdit {
	if m.Call == nil || m.Call.Ellipsis.IsValid() {
		return nil
	}
	f := p.FileAt(m.Pos())
	if f == nil || syntax.Text(p.Fset, f, m.Call) == "" {
		return nil
	}
	sel, ok := ast.Unparen(m.Call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	pkg, ok := sel.X.(*ast.Ident)
	if _, isPkg := p.TypesInfo.Uses[pkg].(*types.PkgName); !ok || !isPkg {
		return nil
	}
	names := []string{"$pkg", pkg.Name}
	for i, a := range m.Call.Args {
		name := "$" + strconv.Itoa(i)
		n := strings.Count(template, name)
		if n == 0 || n > 1 && !syntax.Pure(p.TypesInfo, a) {
			return nil
		}
		names = append(names, name, syntax.Text(p.Fset, f, a))
	}
	text := strings.NewReplacer(names...).Replace(template)
	return []analysis.TextEdit{{Pos: m.Call.Pos(), End: m.Call.End(), NewText: []byte(text)}}
}

// chain calls a method on the result.
func (m Match) chain(call string) []analysis.TextEdit {
	if m.Call == nil {
		return nil
	}
	return []analysis.TextEdit{{Pos: m.Call.End(), End: m.Call.End(), NewText: []byte("." + call)}}
}

// option adds an argument to the innermost call around the match that takes any
// number of what the option is.
func (m Match) option(p *rule.Pass, call string) []analysis.TextEdit {
	path := around(p, m.Node)
	for i, n := range slices.Backward(path) {
		outer, ok := n.(*ast.CallExpr)
		if !ok || outer.Ellipsis.IsValid() || i+1 >= len(path) {
			continue
		}
		sig, ok := p.TypesInfo.TypeOf(outer.Fun).(*types.Signature)
		match := slices.IndexFunc(outer.Args, func(a ast.Expr) bool { return a == path[i+1] })
		if !ok || !sig.Variadic() || match < 0 {
			continue
		}
		// Behind the match, or behind the last of the arguments that come before the
		// options. One call may give them all, and then nothing can stand behind it.
		last := max(match, sig.Params().Len()-2)
		pkg := m.packageName(p)
		if pkg == "" || last >= len(outer.Args) {
			return nil
		}
		at := outer.Args[last].End()
		return []analysis.TextEdit{{Pos: at, End: at, NewText: []byte(", " + pkg + "." + call)}}
	}
	return nil
}

// packageName is the name of the package at the match, or "".
func (m Match) packageName(p *rule.Pass) string {
	if m.Name == nil || p.TypesInfo.Uses[m.Name] == nil {
		return ""
	}
	return m.qualifier(p, p.TypesInfo.Uses[m.Name].Pkg())
}

// around returns the nodes around a node, itself last; nil outside of functions,
// where a value is shared by all that use it.
func around(p *rule.Pass, node ast.Node) []ast.Node {
	f := p.FileAt(node.Pos())
	if f == nil {
		return nil
	}
	path := syntax.Path(f, node.Pos())
	path = path[:slices.Index(path, node)+1]
	if !slices.ContainsFunc(path, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return true
		}
		return false
	}) {
		return nil
	}
	return path
}
