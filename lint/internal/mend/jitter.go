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
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil || n.Pos() > w.Pos() || n.End() <= w.Pos() {
			return false
		}
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) != 1 {
			return true
		}
		sel, ok := c.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		fn, ok := s.TypesInfo.Uses[sel.Sel].(*types.Func)
		if ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" && clock[fn.Name()] && (c.Lparen == w.Pos() || s.onlyClock(w, n)) {
			found = ast.Unparen(c.Args[0])
		}
		return true
	})
	if found != nil && !retry.IsNamed(s.TypesInfo.TypeOf(found), "time", "Duration") {
		return nil
	}
	return found
}

// clock holds what of package time takes a wait.
var clock = map[string]bool{"Sleep": true, "After": true, "NewTimer": true, "Reset": true}

// onlyClock reports whether a call stands in the receive or the select that waits.
func (s site) onlyClock(w ssa.Instruction, n ast.Node) bool {
	_, isCall := w.(*ssa.Call)
	return !isCall && n.Pos() >= w.Pos()
}
