package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Hoisted is what the fixes of fresh keys say of themselves.
const Hoisted = "make the key once, before the first attempt"

// Key makes an idempotency key in front of the loop that sends it: a generator
// that is called where the key is set, or in a statement of the loop. It must
// not depend on anything that the loop declares or changes.
func Key(p *rule.Pass, r *retryloop.Region, set ssa.Instruction) []analysis.SuggestedFix {
	s, ok := siteOf(p, r)
	if !ok || r.Node == nil || !r.Contains(set) {
		return nil
	}
	loop, around := s.statement(r.Node)
	if loop == nil {
		return nil
	}
	var call *ast.CallExpr
	for _, n := range s.path(set.Pos()) {
		if c, ok := n.(*ast.CallExpr); ok && c.Lparen == set.Pos() && len(c.Args) == 2 {
			call = c
		}
	}
	if call == nil {
		return nil
	}
	switch key := ast.Unparen(call.Args[1]).(type) {
	case *ast.CallExpr:
		name := s.free(r.Node, "idempotencyKey", "retryKey")
		if name == "" || !s.independent(key, r.Node) {
			return nil
		}
		return s.suggest(Hoisted, []analysis.TextEdit{
			s.before(loop, name+" := "+s.text(key)+"\n"),
			{Pos: key.Pos(), End: key.End(), NewText: []byte(name)},
		})
	case *ast.Ident:
		return s.hoist(key, r.Node, loop, around)
	}
	return nil
}

// hoist moves key := generate() from the body of a loop in front of it. The name
// must mean nothing there.
func (s site) hoist(key *ast.Ident, loop ast.Node, stmt ast.Stmt, around *types.Scope) []analysis.SuggestedFix {
	obj := s.TypesInfo.Uses[key]
	body := loopBody(loop)
	if obj == nil || body == nil || s.resolves(key.Name, loop.Pos()) != nil || around.Lookup(key.Name) != nil {
		return nil
	}
	for _, made := range body.List {
		a, ok := made.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || len(a.Lhs) != 1 || len(a.Rhs) != 1 || s.TypesInfo.Defs[identOf(a.Lhs[0])] != obj {
			continue
		}
		c, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
		whole, alone := s.lines(a)
		if !ok || !alone || !s.independent(c, loop) || s.changed(loop, obj) {
			return nil
		}
		return s.suggest(Hoisted, []analysis.TextEdit{s.before(stmt, key.Name+" := "+s.text(c)+"\n"), whole})
	}
	return nil
}

// statement returns the statement of a loop, its label included, when it stands
// in a block, and the scope of that block.
func (s site) statement(loop ast.Node) (ast.Stmt, *types.Scope) {
	path := s.path(loop.Pos())
	i := slices.Index(path, loop)
	if i < 1 {
		return nil, nil
	}
	if l, ok := path[i-1].(*ast.LabeledStmt); ok {
		loop, i = l, i-1
	}
	switch path[i-1].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		// The loop has a scope of its own, which begins at its keyword.
		return loop.(ast.Stmt), s.Pkg.Scope().Innermost(path[i].Pos() - 1)
	}
	return nil, nil
}

// independent reports whether an expression has one result and mentions nothing
// that a loop declares or changes.
func (s site) independent(e ast.Expr, loop ast.Node) bool {
	if _, tuple := s.TypesInfo.TypeOf(e).(*types.Tuple); tuple || s.text(e) == "" {
		return false
	}
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		if id, isID := n.(*ast.Ident); isID {
			if v, isVar := s.TypesInfo.Uses[id].(*types.Var); isVar && !v.IsField() {
				ok = ok && (v.Pos() < loop.Pos() || v.Pos() >= loop.End()) && !s.changed(loop, v)
			}
		}
		_, lit := n.(*ast.FuncLit)
		ok = ok && !lit
		return ok
	})
	return ok
}

// free returns the first name that means nothing at a loop and is not mentioned
// in it, or "".
func (s site) free(loop ast.Node, names ...string) string {
	for _, name := range names {
		used := s.resolves(name, loop.Pos()) != nil
		scope := s.Pkg.Scope().Innermost(loop.Pos() - 1)
		used = used || scope == nil || scope.Lookup(name) != nil
		ast.Inspect(loop, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			used = used || ok && id.Name == name
			return !used
		})
		if !used {
			return name
		}
	}
	return ""
}

// lines is the edit that takes a statement away with its lines; alone is false
// when something else stands on them.
func (s site) lines(stmt ast.Stmt) (gone analysis.TextEdit, alone bool) {
	f := s.Fset.File(stmt.Pos())
	first, last := f.Line(stmt.Pos()), f.Line(stmt.End())
	if last >= f.LineCount() {
		return gone, false
	}
	gone.Pos, gone.End = f.LineStart(first), f.LineStart(last+1)
	for _, g := range s.file.Comments {
		if g.Pos() < gone.End && gone.Pos < g.End() {
			return gone, false
		}
	}
	var block *ast.BlockStmt
	for _, n := range s.path(stmt.Pos()) {
		if b, ok := n.(*ast.BlockStmt); ok && slices.Contains(b.List, stmt) {
			block = b
		}
	}
	if block == nil {
		return gone, false
	}
	for _, o := range block.List {
		if o != stmt && o.Pos() < gone.End && gone.Pos < o.End() {
			return gone, false
		}
	}
	return gone, block.Lbrace < gone.Pos && block.Rbrace >= gone.End
}
