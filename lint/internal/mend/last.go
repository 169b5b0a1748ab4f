package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// NotAfterLast is what the fixes of useless waits say of themselves.
const NotAfterLast = "leave the loop before the wait of the last attempt"

// Last leaves a loop before the wait that no attempt follows: the wait is the
// last thing that a turn does, apart from what prepares the next wait, so that
// nothing but the wait is left out. A wait that may return, as for the end of
// a context, is left as it is: the function could have another result.
func Last(p *rule.Pass, r *retryloop.Region) []analysis.SuggestedFix {
	s, ok := siteOf(p, r)
	if !ok || r.Node == nil || len(r.Waits) != 1 {
		return nil
	}
	edits, last := s.lastTurn(r.Node)
	if last == "" {
		return nil
	}
	stmt := s.finalWait(s.path(r.Waits[0].Instr.Pos()), r.Node)
	if stmt == nil {
		return nil
	}
	text := "if " + last + " {\n\tbreak\n}\n"
	edits = append(edits, s.before(stmt, text))
	return s.suggest(NotAfterLast, edits)
}

// lastTurn spells the condition that is true in the last turn of a loop. A loop
// over a number gets a counter if it has none.
func (s site) lastTurn(loop ast.Node) (edits []analysis.TextEdit, cond string) {
	c := s.counterOf(loop)
	if c == nil {
		if c, edits = s.countRange(loop); c == nil {
			return nil, ""
		}
	}
	limit := limitOf(loop)
	_, ranged := loop.(*ast.RangeStmt)
	switch {
	case c.known && c.last <= c.first:
		return nil, ""
	case c.known && s.literal(limit):
		return edits, c.name + " == " + strconv.FormatInt(c.last, 10)
	// The condition of the loop looks at a limit anew, right after the wait, and so
	// does this one, right before it. A range looks at it once.
	case !c.known && (ranged && !s.stable(limit, loop) || !plain(limit)):
		return nil, ""
	case c.until:
		return edits, c.name + " == " + c.bound
	}
	switch x := ast.Unparen(limit).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return edits, c.name + " == " + c.bound + "-1"
	case *ast.BinaryExpr:
		if x.Op == token.ADD && s.text(x.Y) == "1" { // i < retries+1
			return edits, c.name + " == " + s.text(x.X)
		}
	}
	return nil, ""
}

// limitOf is what the counter of a loop is compared with.
func limitOf(loop ast.Node) ast.Expr {
	switch loop := loop.(type) {
	case *ast.ForStmt:
		if b, ok := loop.Cond.(*ast.BinaryExpr); ok {
			return b.Y
		}
	case *ast.RangeStmt:
		return loop.X
	}
	return nil
}

// literal reports whether a limit is a plain number.
func (s site) literal(limit ast.Expr) bool {
	_, ok := limit.(*ast.BasicLit)
	return ok
}

// plain reports whether an expression reads variables and fields, and calls
// nothing.
func plain(e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.Ident, *ast.SelectorExpr, *ast.BinaryExpr, *ast.ParenExpr, *ast.BasicLit, nil:
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// stable reports whether a limit stays the same while the loop runs: it is a
// local variable that neither the loop nor a closure changes.
func (s site) stable(limit ast.Expr, loop ast.Node) bool {
	id := identOf(limit)
	v, ok := s.TypesInfo.Uses[id].(*types.Var)
	if id == nil || !ok || v.Parent() == s.Pkg.Scope() || s.changed(loop, v) {
		return false
	}
	fine := true
	ast.Inspect(s.function(loop.Pos()), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			fine = fine && !s.changed(n, v)
		case *ast.UnaryExpr:
			fine = fine && !(n.Op == token.AND && s.is(n.X, v))
		}
		return fine
	})
	return fine
}

// function is the declaration around pos.
func (s site) function(pos token.Pos) ast.Node {
	for _, n := range s.path(pos) {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f
		}
	}
	return s.file
}

// countRange gives a counter to for range n. The name must be free: nothing in
// the loop may mean something else by it.
func (s site) countRange(loop ast.Node) (*counter, []analysis.TextEdit) {
	r, ok := loop.(*ast.RangeStmt)
	if !ok || r.Key != nil || !dataflow.IsInteger(s.TypesInfo.TypeOf(r.X)) {
		return nil, nil
	}
	for _, name := range []string{"i", "attempt", "n"} {
		used := s.resolves(name, r.Body.End()-1) != nil
		ast.Inspect(r.Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			used = used || ok && id.Name == name
			return !used
		})
		if !used {
			c := s.limit(&counter{name: name}, r.X)
			return c, []analysis.TextEdit{{Pos: r.Range, End: r.Range, NewText: []byte(name + " := ")}}
		}
	}
	return nil, nil
}

// finalWait finds the statement of a wait that is the last of its turn. Between the loop and the
// wait stand blocks and ifs alone, so that a break there is one of the loop.
func (s site) finalWait(path []ast.Node, loop ast.Node) ast.Stmt {
	path = path[slices.Index(path, loop)+1:]
	end := slices.IndexFunc(path, func(n ast.Node) bool { _, ok := n.(*ast.ExprStmt); return ok })
	if end < 0 || !s.plainWait(path[end].(*ast.ExprStmt)) {
		return nil
	}
	wait := path[end].(*ast.ExprStmt)
	for i := end - 1; i >= 0; i-- {
		switch n := path[i].(type) {
		case *ast.IfStmt:
		case *ast.BlockStmt:
			// The rest of a turn up to its continue; without one, the rest of the block
			// around this one follows.
			at := slices.IndexFunc(n.List, func(x ast.Stmt) bool { return x == path[i+1] })
			for _, rest := range n.List[at+1:] {
				if isContinue(rest) {
					if !onlyBlocks(path[:i]) {
						return nil
					}
					return wait
				}
				if !s.harmless(rest, loop) {
					return nil
				}
			}
		default:
			return nil
		}
	}
	return wait
}

// onlyBlocks reports whether nothing but blocks and ifs stands in a path.
func onlyBlocks(path []ast.Node) bool {
	return !slices.ContainsFunc(path, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.BlockStmt, *ast.IfStmt:
			return false
		}
		return true
	})
}

// plainWait reports whether a statement is time.Sleep(d) or <-time.After(d). A
// helper may count or log, and a timer may be looked at later.
func (s site) plainWait(e *ast.ExprStmt) bool {
	x := e.X
	if r, ok := x.(*ast.UnaryExpr); ok && r.Op == token.ARROW {
		x = r.X
	}
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	fn, ok := s.TypesInfo.Uses[sel.Sel].(*types.Func)
	return ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" && (fn.Name() == "Sleep" || fn.Name() == "After")
}

// isContinue reports whether a statement begins the next turn of the loop that
// it stands in.
func isContinue(s ast.Stmt) bool {
	b, ok := s.(*ast.BranchStmt)
	return ok && b.Tok == token.CONTINUE && b.Label == nil
}

// harmless reports whether a statement only prepares the next turn.
func (s site) harmless(stmt ast.Stmt, loop ast.Node) bool {
	ok := true
	ast.Inspect(stmt, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			b, builtin := s.TypesInfo.Uses[identOf(n.Fun)].(*types.Builtin)
			ok = ok && (s.TypesInfo.Types[n.Fun].IsType() || builtin && (b.Name() == "min" || b.Name() == "max"))
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				ok = ok && s.forgotten(l, loop)
			}
		case *ast.IncDecStmt:
			ok = ok && s.forgotten(n.X, loop)
		// A conversion, a product, an if with these in it; all else may have an effect.
		case *ast.IfStmt, *ast.BlockStmt, *ast.BinaryExpr, *ast.ParenExpr, *ast.Ident, *ast.BasicLit, *ast.SelectorExpr, nil:
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// identOf is the identifier that an expression is, or nil.
func identOf(e ast.Expr) *ast.Ident {
	id, _ := ast.Unparen(e).(*ast.Ident)
	return id
}

// forgotten reports whether a variable is local, and looked at neither after the
// loop nor by a closure, nor returned by its name.
func (s site) forgotten(e ast.Expr, loop ast.Node) bool {
	id := identOf(e)
	if id == nil {
		return false
	}
	v, ok := s.TypesInfo.Uses[id].(*types.Var)
	if !ok {
		v, ok = s.TypesInfo.Defs[id].(*types.Var)
	}
	if !ok || v.IsField() || v.Parent() == s.Pkg.Scope() || v.Kind() == types.ResultVar {
		return false
	}
	fine := true
	ast.Inspect(s.function(loop.Pos()), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if n.Pos() > loop.Pos() || n.End() < loop.End() { // the loop may stand in a literal itself
				fine = fine && !s.uses(n, v)
				return false
			}
		case *ast.UnaryExpr:
			fine = fine && !(n.Op == token.AND && s.is(n.X, v))
		case *ast.Ident:
			inside := loop.Pos() <= n.Pos() && n.Pos() < loop.End()
			before := n.Pos() < loop.Pos()
			fine = fine && (s.TypesInfo.Uses[n] != v || inside || before && !s.looped(loop))
		}
		return fine
	})
	return fine
}

// looped reports whether another loop, or a label, stands around a loop: what
// comes before it may come after it as well.
func (s site) looped(loop ast.Node) bool {
	for _, n := range s.path(loop.Pos()) {
		if n == loop {
			break
		}
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.LabeledStmt:
			return true
		}
	}
	return false
}

// uses reports whether a variable is mentioned in a piece of code.
func (s site) uses(in ast.Node, v *types.Var) bool {
	found := false
	ast.Inspect(in, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && s.TypesInfo.Uses[id] == v
		return !found
	})
	return found
}
