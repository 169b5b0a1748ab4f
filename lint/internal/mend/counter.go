package mend

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
)

// counter is the variable of a loop that counts its attempts: for i := 0; i < n;
// i++, or for i := range n. Nothing in the loop changes it otherwise.
type counter struct {
	name  string
	obj   types.Object
	first int64  // the value of the first turn
	bound string // the last value, or the one behind it, as the loop spells it
	until bool   // bound is the last value itself: i <= n
	// last is the value of the last turn, when known.
	last  int64
	known bool
}

// counterOf reads the counter of a loop; nil when it has none of that form.
func (s site) counterOf(loop ast.Node) *counter {
	var c *counter
	var body *ast.BlockStmt
	switch loop := loop.(type) {
	case *ast.ForStmt:
		c, body = s.counted(loop), loop.Body
	case *ast.RangeStmt:
		c, body = s.ranged(loop), loop.Body
	}
	if c == nil || c.obj == nil || !dataflow.IsInteger(c.obj.Type()) || s.changed(body, c.obj) {
		return nil
	}
	return c
}

// counted reads for i := 0; i < n; i++ and for i := 1; i <= n; i++.
func (s site) counted(loop *ast.ForStmt) *counter {
	init, ok := loop.Init.(*ast.AssignStmt)
	if !ok || init.Tok != token.DEFINE || len(init.Lhs) != 1 || len(init.Rhs) != 1 {
		return nil
	}
	i, ok := init.Lhs[0].(*ast.Ident)
	if !ok {
		return nil
	}
	first, ok := s.constInt(init.Rhs[0])
	cond, isCond := loop.Cond.(*ast.BinaryExpr)
	post, isPost := loop.Post.(*ast.IncDecStmt)
	if !ok || first < 0 || !isCond || !isPost || post.Tok != token.INC || cond.Op != token.LSS && cond.Op != token.LEQ {
		return nil
	}
	c := &counter{name: i.Name, obj: s.TypesInfo.Defs[i], first: first, until: cond.Op == token.LEQ}
	if !s.is(cond.X, c.obj) || !s.is(post.X, c.obj) {
		return nil
	}
	return s.limit(c, cond.Y)
}

// ranged reads for i := range n over an integer.
func (s site) ranged(loop *ast.RangeStmt) *counter {
	i, ok := loop.Key.(*ast.Ident)
	if !ok || loop.Tok != token.DEFINE || i.Name == "_" || loop.Value != nil {
		return nil
	}
	if t := s.TypesInfo.TypeOf(loop.X); t == nil || !dataflow.IsInteger(t) {
		return nil
	}
	return s.limit(&counter{name: i.Name, obj: s.TypesInfo.Defs[i]}, loop.X)
}

// limit notes what the counter is compared with.
func (s site) limit(c *counter, n ast.Expr) *counter {
	c.bound = s.text(n)
	if v, ok := s.constInt(n); ok {
		c.known, c.last = true, v
		if !c.until {
			c.last--
		}
	}
	return c
}

// turn spells how many turns came before this one: i, or i-1 for a counter that
// begins at one.
func (c *counter) turn() string {
	if c.first == 0 {
		return c.name
	}
	return "(" + c.name + " - " + constant.MakeInt64(c.first).String() + ")"
}

// is reports whether an expression is just the variable.
func (s site) is(e ast.Expr, obj types.Object) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && obj != nil && s.TypesInfo.Uses[id] == obj
}

// changed reports whether a variable may be changed in a block: it is assigned
// to, counted, or its address is taken. A closure in the block counts too.
func (s site) changed(body ast.Node, obj types.Object) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				found = found || s.is(l, obj)
			}
		case *ast.IncDecStmt:
			found = found || s.is(n.X, obj)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && s.is(n.X, obj)
		case *ast.RangeStmt:
			found = found || n.Key != nil && s.is(n.Key, obj) || n.Value != nil && s.is(n.Value, obj)
		}
		return !found
	})
	return found
}

// constInt returns the value of a constant integer.
func (s site) constInt(e ast.Expr) (int64, bool) {
	tv := s.TypesInfo.Types[e]
	if tv.Value == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(tv.Value))
}
