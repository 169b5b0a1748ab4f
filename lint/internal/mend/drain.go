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

// Drained is what the fixes of open responses say of themselves.
const Drained = "drain and close the response before the next attempt"

// Drain closes a response on the way to the next attempt, behind the test of its
// status: at the head of a branch that ends in continue, or after a branch that
// returns. The response must belong to the turn alone, and nothing but its status
// and headers may be looked at afterwards.
func Drain(p *rule.Pass, r *retryloop.Region, op *ssa.Call) []analysis.SuggestedFix {
	s, ok := siteOf(p, r)
	body := loopBody(r.Node)
	if !ok || body == nil {
		return nil
	}
	resp := s.response(body, op)
	if resp == nil {
		return nil
	}
	for i, stmt := range body.List {
		test, ok := stmt.(*ast.IfStmt)
		if !ok || test.Init != nil || test.Else != nil || len(test.Body.List) == 0 || !s.ofStatus(test.Cond, resp) {
			continue
		}
		var rest []ast.Stmt
		var left ast.Node // where the response may go on, open
		switch last := test.Body.List[len(test.Body.List)-1].(type) {
		case *ast.ReturnStmt:
			rest, left = body.List[i+1:], test.Body
		case *ast.BranchStmt:
			if isContinue(last) {
				rest = test.Body.List
				left = &ast.BlockStmt{Lbrace: test.End(), List: body.List[i+1:], Rbrace: body.Rbrace}
			}
		}
		if len(rest) == 0 || !s.finished(rest, resp) || s.handedOn(body, left, resp) {
			continue
		}
		return s.close(rest[0], resp)
	}
	return nil
}

// close inserts the two calls in front of a statement.
func (s site) close(stmt ast.Stmt, resp *types.Var) []analysis.SuggestedFix {
	io, imports := s.imported("io"), []string(nil)
	switch {
	case io == "" && s.resolves("io", stmt.Pos()) == nil && !s.fileName("io"):
		io, imports = "io", []string{`"io"`}
	case io == "" || !s.named(io, stmt.Pos()):
		return nil
	}
	if s.resolves(resp.Name(), stmt.Pos()) != resp || !s.atLeast("go1.16") {
		return nil
	}
	text := io + ".Copy(" + io + ".Discard, " + io + ".LimitReader(" + resp.Name() + ".Body, 64<<10))\n" + resp.Name() + ".Body.Close()\n"
	return s.suggest(Drained, []analysis.TextEdit{s.before(stmt, text)}, imports...)
}

// response is the variable of a turn that takes the response of an operation, in
// a statement of the loop itself; nil when it is not declared there.
func (s site) response(body *ast.BlockStmt, op *ssa.Call) *types.Var {
	for _, stmt := range body.List {
		a, ok := stmt.(*ast.AssignStmt)
		if !ok || len(a.Rhs) != 1 {
			continue
		}
		c, ok := ast.Unparen(a.Rhs[0]).(*ast.CallExpr)
		if !ok || c.Lparen != op.Pos() {
			continue
		}
		id := identOf(a.Lhs[0])
		obj := s.TypesInfo.Defs[id]
		if obj == nil {
			obj = s.TypesInfo.Uses[id]
		}
		if v, ok := obj.(*types.Var); ok && body.Pos() < v.Pos() && v.Pos() < body.End() {
			return v
		}
	}
	return nil
}

// ofStatus reports whether a condition looks at the status of a response and at
// nothing else, so that the response is there whatever comes out.
func (s site) ofStatus(cond ast.Expr, resp *types.Var) bool {
	status, ok := false, true
	ast.Inspect(cond, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if s.is(n.X, resp) {
				status = status || n.Sel.Name == "StatusCode"
				ok = ok && n.Sel.Name == "StatusCode"
				return false
			}
			_, pkg := s.TypesInfo.Uses[identOf(n.X)].(*types.PkgName)
			ok = ok && pkg // http.StatusOK
			return false
		case *ast.BinaryExpr:
			ok = ok && n.Op != token.ARROW
		case *ast.Ident:
			_, isConst := s.TypesInfo.Uses[n].(*types.Const)
			ok = ok && isConst
		case *ast.ParenExpr, *ast.BasicLit, nil:
		default:
			ok = false
		}
		return ok
	})
	return status && ok
}

// finished reports whether statements look at nothing of a response but what is
// left of it once it is closed.
func (s site) finished(stmts []ast.Stmt, resp *types.Var) bool {
	ok := true
	for _, stmt := range stmts {
		ast.Inspect(stmt, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if s.is(n.X, resp) {
					ok = ok && (n.Sel.Name == "StatusCode" || n.Sel.Name == "Status" || n.Sel.Name == "Header" || n.Sel.Name == "Request")
					return false
				}
			case *ast.Ident:
				ok = ok && s.TypesInfo.Uses[n] != resp
			}
			return ok
		})
	}
	return ok
}

// handedOn reports whether a response is used as a value in body, other than in
// a comparison with nil or on the way out of the loop: what keeps it may read it
// later.
func (s site) handedOn(body *ast.BlockStmt, left ast.Node, resp *types.Var) (used bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return !s.is(n.X, resp)
		case *ast.BinaryExpr:
			return !s.is(n.X, resp) && !s.is(n.Y, resp)
		case *ast.Ident:
			out := left.Pos() <= n.Pos() && n.Pos() < left.End()
			used = used || !out && s.TypesInfo.Uses[n] == types.Object(resp) && !s.assigned(body, n)
		}
		return !used
	})
	return used
}

// assigned reports whether an identifier stands on the left of an assignment.
func (s site) assigned(body *ast.BlockStmt, id *ast.Ident) (on bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			on = on || slices.Contains(a.Lhs, ast.Expr(id))
		}
		return !on
	})
	return on
}
