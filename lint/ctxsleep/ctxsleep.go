// Package ctxsleep reports retries that sleep although a context is in scope
// (FB1020).
//
// Experimental: what this package exports may change in any version.
package ctxsleep

import (
	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Doc documents FB1020.
var Doc = &rule.Doc{
	ID:     "FB1020",
	Name:   "SleepIgnoresContext",
	Title:  "sleep that ignores a context in scope",
	Remedy: "select on ctx.Done() and a timer instead of time.Sleep",
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
			name, _ := mend.ContextAt(p, pos, r.Node)
			if name == "" {
				continue
			}
			far := r.Boundary == send.Remote || r.Boundary == send.Unknown && r.Spoken
			p.Report(rule.Finding{
				Confidence: rule.Sure(r.Pure && !r.Weak && !r.Waiting && far), Pos: pos, Function: rule.FunctionName(r.Fn),
				Message: "the retry sleeps although " + name + " is in scope",
				Related: []analysis.RelatedInformation{{Pos: r.Pos, Message: "the retry of " + rule.Ops(r)}},
				Fixes:   mend.Sleeps(p, r, name),
			})
			break
		}
	}
}
