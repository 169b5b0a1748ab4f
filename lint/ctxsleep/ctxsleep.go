// Package ctxsleep reports retries that sleep although a context is in scope
// (FB1020).
//
// Experimental: what this package exports may change in any version.
package ctxsleep

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1020.
var Doc = &rule.Doc{
	ID:     "FB1020",
	Name:   "SleepIgnoresContext",
	Title:  "sleep that ignores a context in scope",
	Remedy: "select on ctx.Done() and a timer instead of time.Sleep",
	Text: `time.Sleep between attempts continues after the caller has left: a shutdown hangs, and a
canceled request keeps its resources. Wait for the context too.`,
	Bad: `time.Sleep(d)`,
	Good: `select {
case <-ctx.Done():
	return ctx.Err()
case <-time.After(d):
}`,
	Standard: "R-3",
}

// Analyzer finds sleeps that ignore a context.
var Analyzer = rule.New(Doc, run)

// run reports each retry once, at its first deaf sleep: one helper mends all. Only
// time.Sleep itself counts, and the sleeps of a poller may be short enough not to
// matter.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		for _, w := range r.Waits {
			c, ok := w.(*ssa.Call)
			if !ok || !retry.CallsTo(c.Common(), "time", "Sleep") {
				continue
			}
			name := contextAt(p, c.Pos(), r.Node)
			if name == "" {
				continue
			}
			far := r.Boundary == retry.Remote || r.Boundary == retry.Unknown && r.Spoken
			p.Report(rule.Finding{
				Confidence: rule.Sure(r.Pure && !r.Weak && !r.Waiting && far), Pos: c.Pos(), Function: rule.FunctionName(r.Fn),
				Message: "the retry sleeps although " + name + " is in scope",
				Related: []analysis.RelatedInformation{{Pos: r.Pos, Message: "the retry of " + r.OpNames()}},
			})
			break
		}
	}
}

// contextAt names a context that may end and is in scope at a position, or "".
func contextAt(p *rule.Pass, pos token.Pos, loop ast.Node) string {
	for s := p.Pkg.Scope().Innermost(pos); s != nil && s != p.Pkg.Scope(); s = s.Parent() {
		for _, name := range s.Names() {
			v, ok := s.Lookup(name).(*types.Var)
			if ok && loop != nil && v.Pos() >= loop.Pos() && v.Pos() < loop.End() {
				continue // which is that of one attempt
			}
			if ok && name != "_" && v.Pos() < pos && retry.IsNamed(v.Type(), "context", "Context") && !endless(p, v) {
				return name
			}
		}
	}
	return ""
}

// endless reports whether a context is one that never ends: context.Background.
func endless(p *rule.Pass, v *types.Var) bool {
	f := p.FileAt(v.Pos())
	if f == nil {
		return false
	}
	is := false
	ast.Inspect(f, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			return true
		}
		if id, ok := a.Lhs[0].(*ast.Ident); ok && p.TypesInfo.Defs[id] == types.Object(v) {
			if c, ok := a.Rhs[0].(*ast.CallExpr); ok {
				if name := rule.LastName(c.Fun); name != nil {
					is = name.Name == "Background" || name.Name == "TODO"
				}
			}
		}
		return true
	})
	return is
}
