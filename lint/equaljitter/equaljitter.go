// Package equaljitter reports backoff with equal jitter (FB1003).
//
// Experimental: what this package exports may change in any version.
package equaljitter

import (
	"slices"

	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
	"github.com/forbear-go/forbear/lint/nojitter"
)

// Doc documents FB1003.
var Doc = &rule.Doc{
	ID:     "FB1003",
	Name:   "EqualJitter",
	Title:  "equal jitter",
	Remedy: "draw the whole wait at random, rand.N(ceiling), with no fixed part",
	Text: `Half a fixed wait plus half a random one keeps a guaranteed minimum, at which clients
cluster. The standard forbids it; full jitter draws from zero to the ceiling.

Reported are waits of the form d/2 + random(d/2) in retries, and beside them growing waits
of that form that are kept for a later attempt: handed to a store, or added to a time.`,
	Bad:      `time.Sleep(d/2 + rand.N(d/2))`,
	Good:     `time.Sleep(rand.N(d))`,
	Standard: "R-1",
}

// Analyzer finds equal jitter.
var Analyzer = rule.New(Doc, run, fixedinterval.Analyzer, nojitter.Analyzer)

// run reports the waits of regions, and those that are drawn for a later
// attempt. No loop proves that the latter belong to a retry, so that they are
// warnings.
// Known libraries that draw such waits are in the table.
func run(p *rule.Pass) {
	for _, r := range slices.Concat(p.Regions, p.Restarts) {
		if r.Delay.Class == fact.EqualJitter {
			p.ReportRegion(r, rule.RegionConfidence(r), "retries "+rule.Ops(r)+" with equal jitter: half of the wait is fixed", mend.Full(p, r)...)
		}
	}
	// A durable retry computes its wait in one run and sleeps it in none.
	for _, fn := range p.Funcs {
		for _, wait := range p.DeferredEqualJitter(fn) {
			p.Report(rule.Finding{
				Confidence: rule.Medium, Pos: wait.Pos(), Function: rule.FunctionName(fn),
				Message: "keeps a wait with equal jitter for a later attempt: half of it is fixed", Fixes: mend.Draw(p, wait),
			})
		}
	}
	rule.Report(p, table.EqualJitter)
}
