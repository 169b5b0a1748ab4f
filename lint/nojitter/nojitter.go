// Package nojitter reports backoff that grows without randomness (FB1002).
//
// Experimental: what this package exports may change in any version.
package nojitter

import (
	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/retry"
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

It reports retries whose wait grows (a product, a shift, a power, a table of durations) and is
computed without a random source. It also reports constructors of retry libraries with such a
schedule.`,
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

// run reports waits that differ from turn to turn without chance. The confidence is
// that of the retry: the wait itself leaves no doubt.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Delay.Class == retry.Growing { // equal jitter has a rule of its own
			p.ReportRetry(r, rule.RetryConfidence(r), "retries "+r.OpNames()+" on failure with a growing wait that has no jitter", mend.Jitter(p, r)...)
		}
	}
	rule.Report(p, table.NoJitter)
}
