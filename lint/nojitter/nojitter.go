// Package nojitter reports backoff that grows without randomness (FB1002).
//
// Experimental: what this package exports may change in any version.
package nojitter

import (
	"slices"

	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1002.
var Doc = &rule.Doc{
	ID:     "FB1002",
	Name:   "NoJitter",
	Title:  "backoff without jitter",
	Remedy: "wait rand.N(ceiling) instead of the ceiling itself, or use forbear",
	Text: `Growing waits without randomness keep clients in step: those that failed together
retry together, at 1 s, 2 s, 4 s. Full jitter, a random time between zero and the ceiling,
spreads them.

Reported are retries whose wait grows (a product, a shift, a power, a table of
durations) with no call of a random source on the way to it, constructors of retry
libraries that build such a schedule, and calls of retry helpers of other modules whose code
waits so.`,
	Bad: `for i := range 5 {
	if err = call(); err == nil {
		return nil
	}
	time.Sleep(time.Second << i)
}`,
	Good: `for i := range 5 {
	if err = call(); err == nil {
		return nil
	}
	time.Sleep(rand.N(min(30*time.Second, time.Second<<i)))
}`,
	Standard: "R-1",
}

// Analyzer finds backoff without jitter.
var Analyzer = rule.New(Doc, run, fixedinterval.Analyzer)

// run reports growing waits: the verdict is made by the package delay.
// A wait that is decided elsewhere is not reported, and neither is one whose
// random part cannot be seen but is named so. The confidence is that of the
// region, since the wait itself leaves no doubt: growth is proved by arithmetic,
// not by a name.
func run(p *rule.Pass) {
	for _, r := range slices.Concat(p.Regions, p.Restarts) {
		// Equal jitter is a class of its own and has its own rule.
		if r.Delay.Class == fact.Growing {
			p.ReportRegion(r, rule.RegionConfidence(r), "retries "+rule.Ops(r)+" on failure with a growing wait that has no jitter", mend.Jitter(p, r)...)
		}
	}
	setUp := rule.Report(p, table.NoJitter)
	for c, w := range p.HelperWaits() {
		if setUp(c.Common()) {
			continue
		}
		if helper := dataflow.Describe(c.Common()); w.Class == fact.Growing {
			p.ReportAt(c, rule.Sure(w.Sure), "retries through "+helper+", whose wait grows without jitter", helper)
		}
	}
}
