// Package equaljitter reports backoff with equal jitter (FB1003).
//
// Experimental: what this package exports may change in any version.
package equaljitter

import (
	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/retry"
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
	Text: `Half a fixed wait plus half a random one has a minimum at which clients cluster. The standard forbids it; full jitter draws from zero to the ceiling.

It reports waits of the form d/2 + random(d/2) in retries, and constructors of retry
libraries that build such a schedule.`,
	Bad:      `time.Sleep(d/2 + rand.N(d/2))`,
	Good:     `time.Sleep(rand.N(d))`,
	Standard: "R-1",
}

// Analyzer finds equal jitter.
var Analyzer = rule.New(Doc, run, fixedinterval.Analyzer, nojitter.Analyzer)

func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Delay.Class == retry.EqualJitter {
			p.ReportRetry(r, rule.RetryConfidence(r), "retries "+r.OpNames()+" with equal jitter: half of the wait is fixed")
		}
	}
	rule.Report(p, table.EqualJitter)
}
