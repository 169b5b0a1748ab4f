// Package deferloop reports defer statements inside retry loops (FB1053).
//
// Experimental: what this package exports may change in any version.
package deferloop

import (
	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1053.
var Doc = &rule.Doc{
	ID:     "FB1053",
	Name:   "DeferInRetry",
	Title:  "defer inside the retry loop",
	Remedy: "move the attempt into a function of its own, at whose end its defers run",
	Text: `A deferred call runs when the function returns, not when the attempt ends: bodies stay
open, contexts and locks are held over all waits and attempts. Put the attempt in a function of
its own.

Reported are defers from which another attempt may follow. A defer on the way out is fine.`,
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

// run looks at defers that a failing turn reaches and that another turn may
// follow. In the last turn, or in one that succeeds, a defer is right.
// A recursion is left out: its defers pile up as well, but it has no turns that
// could be followed. High confidence needs a pure retry, because a loop that goes
// on after a success may hold its defers on purpose. The finding stands at the
// defer, where the code must change, and not at the loop. InFailedTurn and Again
// are two questions: a defer may stand on a path that fails, and that path may
// still leave the loop.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		if r.Loop == nil {
			continue
		}
		// A go statement ends by itself and is none.
		for d := range retryloop.Instrs[*ssa.Defer](r) {
			if r.Again(d) && r.InFailedTurn(d) {
				message := "defers " + dataflow.Describe(d.Common()) + " in a loop that retries " + rule.Ops(r)
				p.ReportAt(d, rule.Sure(r.Pure && !r.Weak), message+": it runs only when the function returns")
			}
		}
	}
}
