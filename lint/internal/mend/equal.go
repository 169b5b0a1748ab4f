package mend

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/delay"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/syntax"
)

// Whole is what the fixes of equal jitter say of themselves.
const Whole = "draw the whole wait at random, below the same ceiling"

// Full makes the equal jitter of a region's waits full: d/2 + rand.N(d/2) becomes
// rand.N(d). It is sought in the region, and in the helper that computes the
// wait.
func Full(p *rule.Pass, r *retryloop.Region) []analysis.SuggestedFix {
	var found []*ssa.BinOp
	for _, b := range delay.EqualJitters(r.Fn) {
		if r.Contains(b) {
			found = append(found, b)
		}
	}
	for _, w := range r.Waits {
		if c, ok := w.D.(*ssa.Call); ok && c.Common().StaticCallee() != nil {
			found = append(found, delay.EqualJitters(c.Common().StaticCallee())...)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return Draw(p, found[0])
}

// Draw makes one sum of a fixed and a random half a random whole.
// The random half must mention the fixed one as it stands, so that what is drawn
// below can be put in its place: d for d/2, and 2*h for h. What is computed by a
// call is left alone, since it would be called once less.
func Draw(p *rule.Pass, sum *ssa.BinOp) []analysis.SuggestedFix {
	s := site{p, p.FileAt(sum.Pos())}
	if s.file == nil {
		return nil
	}
	var b *ast.BinaryExpr
	for _, n := range s.path(sum.Pos()) {
		if n, ok := n.(*ast.BinaryExpr); ok && n.OpPos == sum.Pos() {
			b = n
		}
	}
	if b == nil || b.Op != token.ADD {
		return nil
	}
	// What goes is the fixed half and the operator.
	fixed, random, gone := b.X, b.Y, analysis.TextEdit{Pos: b.X.Pos(), End: b.Y.Pos()}
	if s.draws(fixed) {
		fixed, random, gone = b.Y, b.X, analysis.TextEdit{Pos: b.X.End(), End: b.Y.End()}
	}
	fixed = ast.Unparen(fixed)
	whole := s.wholeOf(fixed)
	if whole == "" || s.text(b) == "" || !s.draws(random) {
		return nil
	}
	halves := s.mentions(random, s.text(fixed))
	if len(halves) != 1 {
		return nil
	}
	half := analysis.TextEdit{Pos: halves[0].Pos(), End: halves[0].End(), NewText: []byte(whole)}
	return s.suggest(Whole, []analysis.TextEdit{gone, half})
}

// wholeOf spells what an expression is the half of; "" when it is computed by a
// call.
func (s site) wholeOf(half ast.Expr) string {
	if !syntax.Pure(s.TypesInfo, half) {
		return ""
	}
	switch e := half.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return "2*" + s.text(half)
	case *ast.BinaryExpr:
		by := s.text(e.Y)
		if e.Op == token.QUO && by == "2" || e.Op == token.SHR && by == "1" || e.Op == token.MUL && by == "0.5" {
			return s.text(e.X)
		}
	}
	return ""
}

// mentions returns the parts of an expression that are spelled in a given way.
func (s site) mentions(e ast.Expr, x string) (found []ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if part, ok := n.(ast.Expr); ok && s.text(part) == x {
			found = append(found, part)
		}
		return true
	})
	return found
}

// draws reports whether an expression calls a package of random numbers.
func (s site) draws(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if pkg, ok := s.TypesInfo.Uses[id].(*types.PkgName); ok {
				path := pkg.Imported().Path()
				found = found || path == "math/rand" || path == "math/rand/v2"
			}
		}
		return !found
	})
	return found
}
