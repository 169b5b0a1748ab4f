package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Key makes an idempotency key in front of the loop that sends it: a generator that is
// called where the key is set. It must not depend on anything of the loop.
func Key(p *rule.Pass, r *retry.Retry, set ssa.Instruction) []analysis.SuggestedFix {
	s := siteOf(p, set.Pos())
	if s.file == nil || r.Node == nil {
		return nil
	}
	loop, scope := s.statementOf(r.Node)
	call := s.setter(set.Pos())
	if loop == nil || scope == nil || call == nil {
		return nil
	}
	made, ok := ast.Unparen(call.Args[1]).(*ast.CallExpr)
	name := "idempotencyKey"
	if !ok || s.taken(name) || scope.Lookup(name) != nil || !s.independent(made, r.Node) {
		return nil
	}
	indent := strings.Repeat("\t", s.Fset.Position(loop.Pos()).Column-1)
	return []analysis.SuggestedFix{{Message: "make the key once, before the first attempt", TextEdits: []analysis.TextEdit{
		{Pos: loop.Pos(), End: loop.Pos(), NewText: []byte(name + " := " + s.text(made) + "\n" + indent)},
		{Pos: made.Pos(), End: made.End(), NewText: []byte(name)},
	}}}
}

// setter is the call that sets the header, a name and a value.
func (s site) setter(pos token.Pos) (found *ast.CallExpr) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && c.Lparen == pos && len(c.Args) == 2 {
			found = c
		}
		return found == nil
	})
	return found
}

// independent reports whether an expression has one result and mentions no variable.
func (s site) independent(e ast.Expr, loop ast.Node) bool {
	if _, tuple := s.TypesInfo.TypeOf(e).(*types.Tuple); tuple {
		return false
	}
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		if id, isID := n.(*ast.Ident); isID {
			v, isVar := s.TypesInfo.Uses[id].(*types.Var)
			ok = ok && !(isVar && !v.IsField() && v.Pos() >= loop.Pos() && v.Pos() < loop.End())
		}
		_, lit := n.(*ast.FuncLit)
		ok = ok && !lit
		return ok
	})
	return ok
}
