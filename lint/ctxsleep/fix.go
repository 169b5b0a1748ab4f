package ctxsleep

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
)

// fix replaces the statement time.Sleep(d) by a select that ends with the
// context; nil where the function cannot return the context's error.
// The sleep must be a statement of its own, called by the name of the package;
// the name is kept, since an import may have renamed it. time.After is good
// enough here: since Go 1.23 an abandoned timer is collected.
func fix(p *rule.Pass, path []ast.Node, ctx string) []analysis.SuggestedFix {
	var stmt *ast.ExprStmt
	var results *ast.FieldList
	for _, n := range path {
		switch n := n.(type) {
		case *ast.ExprStmt:
			stmt = n
		case *ast.FuncDecl:
			results = n.Type.Results
		case *ast.FuncLit:
			results = n.Type.Results
		}
	}
	if stmt == nil {
		return nil
	}
	call, ok := stmt.X.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	timePkg, ok := sel.X.(*ast.Ident)
	if !ok || sel.Sel.Name != "Sleep" {
		return nil
	}
	// Without an error to return, the caller could not know that the wait was cut
	// off.
	values, ok := returns(p, results, ctx)
	if !ok {
		return nil
	}
	var arg bytes.Buffer
	if err := format.Node(&arg, p.Fset, call.Args[0]); err != nil {
		return nil
	}
	// A label or a break in the loop around it is not touched: the new case returns.
	text := "select {\ncase <-" + ctx + ".Done():\nreturn" + values + "\ncase <-" + timePkg.Name + ".After(" + arg.String() + "):\n}"
	text = strings.ReplaceAll(text, "\n", "\n"+indentation(p, stmt.Pos()))
	return []analysis.SuggestedFix{{
		Message:   "wait for " + ctx + " too",
		TextEdits: []analysis.TextEdit{{Pos: stmt.Pos(), End: stmt.End(), NewText: []byte(text)}},
	}}
}

// indentation returns the tabs before the statement at pos.
// Columns count bytes, and a tab is one byte.
func indentation(p *rule.Pass, pos token.Pos) string {
	return strings.Repeat("\t", max(p.Fset.Position(pos).Column-1, 0))
}

// returns spells what the function returns when the context has ended: zero
// values, and the context's error last. A function that returns no error
// cannot tell, so it gets no fix.
// Named results are spelled out too, so that the return reads the same
// everywhere.
func returns(p *rule.Pass, results *ast.FieldList, ctx string) (string, bool) {
	if results == nil || len(results.List) == 0 {
		return "", false
	}
	var values []string
	for _, f := range results.List {
		t := p.TypesInfo.TypeOf(f.Type)
		for range max(len(f.Names), 1) {
			z, ok := zero(t, f.Type)
			if !ok {
				return "", false
			}
			values = append(values, z)
		}
	}
	last := p.TypesInfo.TypeOf(results.List[len(results.List)-1].Type)
	if !types.Identical(last, types.Universe.Lookup("error").Type()) {
		return "", false
	}
	values[len(values)-1] = ctx + ".Err()"
	return " " + strings.Join(values, ", "), true
}

// zero spells the zero value of t, whose type is written as expr.
// ok is false for a type parameter, whose zero value has no short spelling.
func zero(t types.Type, expr ast.Expr) (string, bool) {
	// Its underlying type is its constraint, which is an interface and would pass
	// for nil.
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return "", false
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Interface, *types.Signature:
		return "nil", true
	case *types.Basic:
		switch {
		case u.Info()&types.IsString != 0:
			return `""`, true
		case u.Info()&types.IsBoolean != 0:
			return "false", true
		case u.Info()&types.IsNumeric != 0:
			return "0", true
		}
	case *types.Struct, *types.Array:
		return types.ExprString(expr) + "{}", true
	}
	return "", false
}
