// Package ctxsleep reports retries that sleep although a context is in scope
// (FB1020).
package ctxsleep

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Doc documents FB1020.
var Doc = &rule.Doc{
	ID:    "FB1020",
	Name:  "SleepIgnoresContext",
	Title: "sleep that ignores a context in scope",
	Text: `time.Sleep between attempts goes on after the caller has left: a shutdown hangs, a
canceled request holds its resources. Wait for the context as well.

The fix is a select over ctx.Done() and time.After; it is offered where the function's results
let it return ctx.Err().`,
	Bad: `time.Sleep(d)`,
	Good: `select {
case <-ctx.Done():
	return ctx.Err()
case <-time.After(d):
}`,
	Standard: "R-3",
}

// Analyzer finds sleeps that ignore a context.
// The fix may be applied by forbear lint --fix.
var Analyzer = rule.New(Doc, run)

// run reports each retry once, at its first deaf sleep: one helper mends all.
// Only time.Sleep itself counts. What a helper does with a context is not seen
// from here.
// Confidence is high only for a plain retry of a remote call: a poller or a
// local wait may be short enough not to matter.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		for _, w := range r.Waits {
			if !w.Sleep {
				continue
			}
			pos := w.Instr.Pos()
			name := contextAt(p, pos)
			if name == "" {
				continue
			}
			far := r.Boundary == send.Remote || r.Boundary == send.Unknown && r.Spoken
			p.Report(rule.Finding{
				Confidence: rule.Sure(r.Pure && !r.Weak && !r.Waiting && far), Pos: pos, Function: rule.FunctionName(r.Fn),
				Message: "the retry sleeps although " + name + " is in scope",
				Related: []analysis.RelatedInformation{{Pos: r.Pos, Message: "the retry of " + rule.Ops(r)}},
				Fixes:   fix(p, enclosing(p, pos), name),
			})
			break
		}
	}
}

// contextAt names a context.Context that is visible at pos, or "".
// The innermost scope wins, as it does for the compiler. The name ctx comes
// first, since it is what the fix should use. A request counts when it is a
// parameter: its context ends with the client. Contexts of the package scope do
// not count, because they end with no call.
func contextAt(p *rule.Pass, pos token.Pos) string {
	for s := p.Pkg.Scope().Innermost(pos); s != nil && s != p.Pkg.Scope() && s != types.Universe; s = s.Parent() {
		if obj, ok := s.Lookup("ctx").(*types.Var); ok && obj.Pos() < pos && dataflow.IsContext(obj.Type()) && !background(p, obj) {
			return "ctx"
		}
		for _, n := range s.Names() {
			obj, ok := s.Lookup(n).(*types.Var)
			if !ok || n == "_" || obj.Pos() >= pos {
				continue
			}
			if dataflow.IsContext(obj.Type()) && !background(p, obj) {
				return n
			}
			// A handler has its context in the request. One that the function builds
			// itself is one that it sends, and its context may be any.
			if dataflow.IsNamed(obj.Type(), "net/http", "Request") && obj.Kind() == types.ParamVar {
				return n + ".Context()"
			}
		}
	}
	return ""
}

// background reports whether a variable is declared as context.Background() or
// context.TODO(), which never end.
// To wait for such a context changes nothing.
func background(p *rule.Pass, v *types.Var) bool {
	path := enclosing(p, v.Pos())
	if len(path) < 2 {
		return false
	}
	a, ok := path[len(path)-2].(*ast.AssignStmt)
	if !ok || len(a.Rhs) != 1 {
		return false
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "Background" || sel.Sel.Name == "TODO")
}

// enclosing returns the nodes around pos, outermost first.
// The fix needs them to find the statement and the results of its function.
func enclosing(p *rule.Pass, pos token.Pos) []ast.Node {
	var path []ast.Node
	f := p.FileAt(pos)
	if f == nil {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || pos < n.Pos() || pos >= n.End() {
			return false
		}
		path = append(path, n)
		return true
	})
	return path
}
