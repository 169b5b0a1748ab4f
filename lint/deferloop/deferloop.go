// Package deferloop reports defer statements inside retry loops (FB1053).
//
// Experimental: what this package exports may change in any version.
package deferloop

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1053.
var Doc = &rule.Doc{
	ID:     "FB1053",
	Name:   "DeferInRetry",
	Title:  "defer inside the retry loop",
	Remedy: "move the attempt into its own function, so its defers run when it ends",
	Text: `A deferred call runs when the function returns, not when the attempt ends: bodies stay
open, contexts and locks are held over all waits and attempts. Put the attempt into its
own function.

Reported are defers after which another attempt may follow. A defer on the way out is fine.`,
	Bad: `for range 3 {
	resp, err := client.Do(req)
	...
	defer resp.Body.Close()
	if resp.StatusCode < 500 {
		return nil
	}
}`,
	Good: `for range 3 {
	if err = attempt(); err == nil { // defers inside
		return nil
	}
}`,
	Standard: "R-1",
}

// Analyzer finds defers inside retry loops.
var Analyzer = rule.New(Doc, run)

// run looks at defers that a failing turn reaches and that another turn may follow. The
// finding stands at the defer, where the code must change.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Loop == nil {
			continue
		}
		for d := range retry.Instrs[*ssa.Defer](r) {
			if r.Loop.Returns(d.Block()) && p.InFailedTurn(r, d.Block()) {
				message := "defers " + retry.Describe(d.Common()) + " in a loop that retries " + r.OpNames()
				p.ReportAt(d, rule.Sure(r.Pure && !r.Weak), message+": it runs only when the function returns")
			}
		}
	}
}
