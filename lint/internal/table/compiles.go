package table

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/syntax"
)

// compiles reports whether edits at a match leave code that compiles: the whole
// expression around it, up to the statement, type-checks where it stands, and has
// the type that it had. What is called there, and how many results it gives, is
// all in that, whatever the version of the library.
func (m Match) compiles(p *rule.Pass, edits []analysis.TextEdit) bool {
	var target ast.Node = m.Node
	if m.Call == nil && m.Arg != nil { // the value that is assigned
		target = m.Arg
	}
	f := p.FileAt(m.Pos())
	if f == nil || p.ReadFile == nil {
		return false
	}
	file := p.Fset.File(f.FileStart)
	src, err := p.ReadFile(file.Name())
	whole := wholeExpr(f, target)
	if err != nil || whole == nil || len(src) != file.Size() {
		return false
	}
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b analysis.TextEdit) int { return int(a.Pos - b.Pos) })
	var text []byte
	at := whole.Pos()
	for _, e := range edits {
		if e.Pos < at || e.End > whole.End() {
			return false
		}
		text = append(append(text, src[file.Offset(at):file.Offset(e.Pos)]...), e.NewText...)
		at = e.End
	}
	text = append(text, src[file.Offset(at):file.Offset(whole.End())]...)
	now, err := types.Eval(p.Fset, p.Pass.Pkg, whole.Pos(), string(text))
	if err != nil {
		return false
	}
	was := p.TypesInfo.Types[whole]
	return now.IsVoid() && was.IsVoid() || now.Type != nil && was.Type != nil && (types.Identical(now.Type, was.Type) || stands(now, was.Type))
}

// wholeExpr is the largest expression around a node within its statement, or nil.
func wholeExpr(f *ast.File, node ast.Node) (whole ast.Expr) {
	path := syntax.Path(f, node.Pos())
	for _, n := range path[:slices.Index(path, node)+1] {
		switch n := n.(type) {
		case ast.Expr:
			if whole == nil {
				whole = n
			}
		case ast.Stmt, ast.Decl, ast.Spec:
			whole = nil
		}
	}
	return whole
}

// stands reports whether an untyped constant may stand for a value of a type.
func stands(tv types.TypeAndValue, t types.Type) bool {
	b, ok := tv.Type.(*types.Basic)
	if !ok || b.Info()&types.IsUntyped == 0 || tv.Value == nil || !types.AssignableTo(tv.Type, t) {
		return false
	}
	to, ok := t.Underlying().(*types.Basic)
	return !ok || to.Info()&types.IsInteger == 0 || constant.ToInt(tv.Value).Kind() == constant.Int
}
