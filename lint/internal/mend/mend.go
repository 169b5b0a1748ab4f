// Package mend makes the fixes of retries: text edits that put right what a rule
// reports, where that certainly compiles and keeps the number of attempts, the
// results and the order of effects. Where any of it is in doubt there is no fix.
//
// A fixed wait becomes a random one. Where the loop counts its attempts, and the
// wait and the limit are constants, the ceiling doubles with each attempt, as
// the standard has it: d<<i, up to 30 s. Otherwise the ceiling is twice
// the wait, so that the mean stays what its author chose: the product of all
// waits is often tuned to a deadline or to the start of a server. A wait that
// grows keeps its growth, and becomes the ceiling below which the wait is drawn.
//
// Zero and negative durations do not panic: math/rand does at a bound of zero,
// so whatever is not certainly positive is drawn below max(1, d).
package mend

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/syntax"
)

// What the fixes say of themselves: what is different then.
const (
	Doubles = "wait a random time below a ceiling that doubles with each attempt"
	Twice   = "wait a random time below twice the interval: the mean stays"
	Below   = "wait a random time below the one of before"
)

// Messages are the messages of all fixes of this package. A test looks for a
// golden file of each.
var Messages = []string{Doubles, Twice, Below, Whole, NotAfterLast, Inserted, Hoisted, Drained}

// site is one file in which something is mended.
type site struct {
	*rule.Pass
	file *ast.File
}

// siteOf returns the site of a region; ok is false for one outside of the files,
// as code that was made by cgo may be.
func siteOf(p *rule.Pass, r *retryloop.Region) (site, bool) {
	f := p.FileAt(r.Pos)
	return site{p, f}, f != nil
}

// text spells an expression as it stands in the file; "" when a comment lies in
// it, which would be lost.
func (s site) text(e ast.Expr) string { return syntax.Text(s.Fset, s.file, e) }

// pretty spells an expression as gofmt has it.
func pretty(x string) string {
	fset := token.NewFileSet()
	e, err := parser.ParseExprFrom(fset, "", x, 0)
	var b bytes.Buffer
	if err != nil || format.Node(&b, fset, e) != nil {
		return x
	}
	return b.String()
}

// duration reports whether a spelled expression is a time.Duration at pos. It is
// the last word on an expression that was put together: what does not
// type-check is not offered.
func (s site) duration(pos token.Pos, x string) bool {
	tv, err := types.Eval(s.Fset, s.Pkg, pos, x)
	return err == nil && tv.Type != nil && dataflow.IsDuration(tv.Type)
}

// resolves returns what a name means at pos.
func (s site) resolves(name string, pos token.Pos) types.Object {
	scope := s.Pkg.Scope().Innermost(pos)
	if scope == nil {
		return nil
	}
	_, obj := scope.LookupParent(name, pos)
	return obj
}

// predeclared reports whether all names mean at pos what the language says.
func (s site) predeclared(pos token.Pos, names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool {
		obj := s.resolves(n, pos)
		return obj == nil || obj.Parent() != types.Universe
	})
}

// indented spells statements so that they may stand at pos: each line but the
// first has the tabs of that place. Columns count bytes, and a tab is one byte.
func (s site) indented(text string, pos token.Pos) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat("\t", max(s.Fset.PositionFor(pos, false).Column-1, 0)))
}

// before inserts statements in front of another one, and of the comments that
// lead it.
func (s site) before(stmt ast.Stmt, text string) analysis.TextEdit {
	at := stmt.Pos()
	for _, g := range slices.Backward(s.file.Comments) {
		if g.End() > at || s.line(g.End()) != s.line(at)-1 {
			continue
		}
		// What stands behind code on its line belongs to that.
		path := s.path(g.Pos())
		if block, ok := path[len(path)-1].(*ast.BlockStmt); ok && s.aloneIn(block, g) {
			at = g.Pos()
		}
		break
	}
	return analysis.TextEdit{Pos: at, End: at, NewText: []byte(s.indented(text, at))}
}

// aloneIn reports whether a comment has lines of its own in a block.
func (s site) aloneIn(block *ast.BlockStmt, g *ast.CommentGroup) bool {
	line := s.line(g.Pos())
	return line != s.line(block.Lbrace) && !slices.ContainsFunc(block.List, func(x ast.Stmt) bool { return s.line(x.End()) == line })
}

// line is the line of a position in its file.
func (s site) line(pos token.Pos) int { return s.Fset.PositionFor(pos, false).Line }

// path returns the nodes around pos, outermost first.
func (s site) path(pos token.Pos) []ast.Node { return syntax.Path(s.file, pos) }

// suggest makes a fix of edits, with those of the imports that it needs.
func (s site) suggest(message string, edits []analysis.TextEdit, imports ...string) []analysis.SuggestedFix {
	if len(imports) > 0 {
		edits = append(edits, s.importing(imports))
	}
	return []analysis.SuggestedFix{{Message: message, TextEdits: edits}}
}
