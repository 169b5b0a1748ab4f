package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Sleeps makes the sleeps of a retry end with the context, all that can be
// mended: a rule reports the first of them alone.
func Sleeps(p *rule.Pass, r *retryloop.Region, ctx string) []analysis.SuggestedFix {
	var edits []analysis.TextEdit
	seen := map[token.Pos]bool{} // one sleep may be several waits
	for _, w := range r.Waits {
		if pos := w.Instr.Pos(); w.Sleep && !seen[pos] {
			seen[pos] = true
			if name, named := ContextAt(p, pos, r.Node); named {
				edits = append(edits, sleep(p, pos, name)...)
			}
		}
	}
	if len(edits) == 0 {
		return nil
	}
	return []analysis.SuggestedFix{{Message: "wait for " + ctx + " too", TextEdits: edits}}
}

// sleep replaces the statement time.Sleep(d) at pos by a select that ends with
// the context; nil where the function cannot return the context's error.
// The sleep must be a statement of its own, called by the name of the package;
// the name is kept, since an import may have renamed it. time.After is good
// enough here: since Go 1.23 an abandoned timer is collected.
func sleep(p *rule.Pass, pos token.Pos, ctx string) []analysis.TextEdit {
	s := site{p, p.FileAt(pos)}
	if s.file == nil {
		return nil
	}
	path := s.path(pos)
	var stmt *ast.ExprStmt
	for _, n := range path {
		if n, ok := n.(*ast.ExprStmt); ok {
			stmt = n
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
	// The argument is left as it is, for its comments, and for a fix of the
	// duration that may be made at the same time.
	before, after, ok := strings.Cut(s.contextWait(path, ctx, timePkg.Name+".After(\x00)"), "\x00")
	if !ok {
		return nil
	}
	return []analysis.TextEdit{
		{Pos: stmt.Pos(), End: call.Lparen + 1, NewText: []byte(s.indented(before, stmt.Pos()))},
		{Pos: call.Rparen, End: stmt.End(), NewText: []byte(s.indented(after, stmt.Pos()))},
	}
}

// contextWait spells a receive from a timer that the context ends as well; ""
// without an error to return: the caller could not know that the wait was cut
// off.
// A label or a break in the loop around it is not touched: the new case returns.
func (s site) contextWait(path []ast.Node, ctx, timer string) string {
	var results *ast.FieldList
	for _, n := range path {
		switch n := n.(type) {
		case *ast.FuncDecl:
			results = n.Type.Results
		case *ast.FuncLit:
			results = n.Type.Results
		}
	}
	values, ok := returns(s.Pass, results, ctx)
	if !ok {
		return ""
	}
	return "select {\ncase <-" + ctx + ".Done():\n\treturn" + values + "\ncase <-" + timer + ":\n}"
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

// ContextAt names a context.Context that is visible at pos and ends the retry,
// or is "". named says that the name means it there: a name may be declared
// again further in, and then no fix can use it.
// The innermost scope wins, but what the loop declares is the context of one
// attempt, and may have ended before the wait. The name ctx comes first, since it
// is what the fix should use. A request counts when it is a parameter: its
// context ends with the client. Contexts of the package scope do not count,
// because they end with no call. A nil loop declares nothing.
func ContextAt(p *rule.Pass, pos token.Pos, loop ast.Node) (name string, named bool) {
	site := site{p, p.FileAt(pos)}
	if site.file == nil {
		return "", false
	}
	for s := p.Pkg.Scope().Innermost(pos); s != nil && s != p.Pkg.Scope() && s != types.Universe; s = s.Parent() {
		for _, n := range append([]string{"ctx"}, s.Names()...) {
			obj, ok := s.Lookup(n).(*types.Var)
			if !ok || n == "_" || obj.Pos() >= pos || loop != nil && loop.Pos() <= obj.Pos() && obj.Pos() < loop.End() {
				continue
			}
			named := site.resolves(n, pos) == types.Object(obj)
			if dataflow.IsContext(obj.Type()) && !site.background(obj) {
				return n, named
			}
			// A handler has its context in the request. One that the function builds
			// itself is one that it sends, and its context may be any.
			if dataflow.IsNamed(obj.Type(), "net/http", "Request") && obj.Kind() == types.ParamVar {
				return n + ".Context()", named
			}
		}
	}
	return "", false
}

// background reports whether a variable is declared as a context that never ends,
// or as none, and nothing is assigned to it.
// To wait for such a context changes nothing, or panics.
func (s site) background(v *types.Var) bool {
	path := s.path(v.Pos())
	if len(path) < 2 {
		return false
	}
	switch d := path[len(path)-2].(type) {
	case *ast.AssignStmt:
		return len(d.Rhs) == 1 && s.endless(d.Rhs[0])
	case *ast.ValueSpec:
		return len(d.Values) == 0 && !s.changed(s.file, v) || len(d.Values) == 1 && s.endless(d.Values[0])
	}
	return false
}

// endless reports whether an expression is nil, context.Background() or
// context.TODO(), or a context with values that is made of one of them.
func (s site) endless(e ast.Expr) bool {
	e = ast.Unparen(e)
	if s.TypesInfo.Types[e].IsNil() {
		return true
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	if s.TypesInfo.Types[call.Fun].IsType() { // context.Context(nil)
		return s.endless(call.Args[0])
	}
	fn, ok := typeutil.Callee(s.TypesInfo, call).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "context" {
		return false
	}
	switch fn.Name() {
	case "Background", "TODO", "WithoutCancel":
		return true
	case "WithValue":
		return s.endless(call.Args[0])
	}
	return false
}
