package table

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
)

// instead replaces the call by another expression of the same package. An argument
// that is named twice must not be computed by a call.
func (m Match) instead(p *rule.Pass, template string) []analysis.TextEdit {
	if m.Call == nil || m.Call.Ellipsis.IsValid() || commented(p, m.Call) {
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
		if n == 0 || n > 1 && !pure(p, a) {
			return nil
		}
		names = append(names, name, spell(p, a))
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
		if !ok || !sig.Variadic() || !slices.ContainsFunc(outer.Args, func(a ast.Expr) bool { return a == path[i+1] }) {
			continue
		}
		pkg := m.packageName(p)
		if pkg == "" {
			return nil
		}
		// Behind the match, or behind the last of the arguments that come before the
		// options.
		before := slices.IndexFunc(outer.Args, func(a ast.Expr) bool { return a == path[i+1] })
		at := outer.Args[max(before, sig.Params().Len()-2)].End()
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
func around(p *rule.Pass, node ast.Node) (path []ast.Node) {
	f := p.FileAt(node.Pos())
	if f == nil {
		return nil
	}
	inside := false
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || n.Pos() > node.Pos() || node.End() > n.End() || len(path) > 0 && path[len(path)-1] == node {
			return false
		}
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			inside = true
		}
		path = append(path, n)
		return true
	})
	if !inside {
		return nil
	}
	return path
}

// pure reports whether an expression may be computed twice: it calls nothing.
func pure(p *rule.Pass, e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			ok = ok && p.TypesInfo.Types[n.Fun].IsType()
		case *ast.FuncLit:
			ok = false
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		}
		return ok
	})
	return ok
}

// commented reports whether a comment lies in a node, which a fix would lose.
func commented(p *rule.Pass, n ast.Node) bool {
	f := p.FileAt(n.Pos())
	return f == nil || slices.ContainsFunc(f.Comments, func(g *ast.CommentGroup) bool { return g.Pos() < n.End() && n.Pos() < g.End() })
}

// spell writes an expression as gofmt has it.
func spell(p *rule.Pass, e ast.Expr) string {
	var b bytes.Buffer
	if format.Node(&b, p.Fset, e) != nil {
		return ""
	}
	return b.String()
}
