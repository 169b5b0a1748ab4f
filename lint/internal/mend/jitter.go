// Package mend writes the fixes of findings: a random wait in place of one that is the
// same for all clients, and an idempotency key that is made once. Each is offered only
// where it is certain to compile and to change nothing else.
package mend

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"go/version"
	"strconv"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// randPath is the package that the fix draws from, which is there since Go 1.22.
const randPath = "math/rand/v2"

// Jitter draws the waits of a retry at random, where they stand: in time.Sleep,
// time.After, time.NewTimer or Reset. What grows is the ceiling of the draw. A fixed
// wait is doubled, so that its mean, which was often tuned to a deadline, stays.
func Jitter(p *rule.Pass, r *retry.Retry) []analysis.SuggestedFix {
	var edits []analysis.TextEdit
	for _, w := range r.Waits {
		s := siteOf(p, w.Pos())
		d := s.duration(w)
		if d == nil {
			return nil
		}
		qualifier, add, ok := s.rand()
		if !ok {
			return nil
		}
		ceiling := s.text(d)
		if r.Delay.Class == retry.Fixed {
			ceiling = double(d, ceiling)
		}
		if v := p.TypesInfo.Types[d].Value; v == nil || constant.Sign(v) <= 0 {
			ceiling = "max(1, " + ceiling + ")" // a draw below zero panics
		}
		edits = append(edits, analysis.TextEdit{Pos: d.Pos(), End: d.End(), NewText: []byte(qualifier + ".N(" + ceiling + ")")})
		if len(edits) == 1 {
			edits = append(edits, add...)
		}
	}
	if len(edits) == 0 {
		return nil
	}
	return []analysis.SuggestedFix{{Message: "draw the wait at random", TextEdits: edits}}
}

// double is twice a duration, in the words of the code.
func double(d ast.Expr, text string) string {
	switch d := d.(type) {
	case *ast.BinaryExpr:
		if n, ok := d.X.(*ast.BasicLit); ok && d.Op == token.MUL && n.Kind == token.INT {
			if k, err := strconv.Atoi(n.Value); err == nil {
				return strconv.Itoa(2*k) + text[len(n.Value):]
			}
		}
		return "2*(" + text + ")"
	}
	return "2*" + text
}

// duration is the expression that a wait is told, or nil: a call of the standard
// library in the code at hand, of Go that has the package and the builtin.
func (s site) duration(w ssa.Instruction) ast.Expr {
	if s.file == nil || version.Compare(s.FileVersion(), "go1.22") < 0 || s.TypesInfo == nil {
		return nil
	}
	var found ast.Expr
	_, isSelect := w.(*ssa.Select)
	ast.Inspect(s.file, func(n ast.Node) bool {
		inside := n != nil && n.Pos() <= w.Pos() && w.Pos() < n.End()
		if sel, ok := n.(*ast.SelectStmt); ok && isSelect && sel.Select == w.Pos() {
			found = s.clocks(sel)
			return false
		}
		if c, ok := n.(*ast.CallExpr); ok && c.Lparen == w.Pos() {
			found = s.told(c)
		}
		return inside
	})
	if found != nil && !retry.IsNamed(s.TypesInfo.TypeOf(found), "time", "Duration") {
		return nil
	}
	return found
}

// clocks is the wait of the only clock in a select, or nil.
func (s site) clocks(sel *ast.SelectStmt) (found ast.Expr) {
	several := false
	ast.Inspect(sel, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if d := s.told(c); d != nil {
				several = several || found != nil
				found = d
			}
		}
		return true
	})
	if several {
		return nil
	}
	return found
}

// told is what a call of package time is told to wait, or nil.
func (s site) told(c *ast.CallExpr) ast.Expr {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) != 1 {
		return nil
	}
	fn, ok := s.TypesInfo.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "time" || !clock[fn.Name()] {
		return nil
	}
	return ast.Unparen(c.Args[0])
}

// clock holds what of package time takes a wait.
var clock = map[string]bool{"Sleep": true, "After": true, "NewTimer": true, "Reset": true}
