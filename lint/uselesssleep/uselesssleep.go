// Package uselesssleep reports waits after the last attempt (FB1054).
//
// Experimental: what this package exports may change in any version.
package uselesssleep

import (
	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/nojitter"
)

// Doc documents FB1054.
var Doc = &rule.Doc{
	ID:     "FB1054",
	Name:   "UselessSleep",
	Title:  "useless sleep after the last attempt",
	Remedy: "leave the loop before the wait if the last attempt failed",
	Text: `After the last attempt there is nothing to wait for: the caller waits the longest
backoff for an error that is already known.

Reported, as advice, are loops that count attempts only at the top and wait at the end of every
iteration.`,
	Bad: `for i := 0; i < 3; i++ {
	if err = send(); err == nil {
		return nil
	}
	time.Sleep(wait(i))
}
return err`,
	Good: `for i := 0; ; i++ {
	if err = send(); err == nil || i == 2 {
		return err
	}
	time.Sleep(wait(i))
}`,
	Standard: "R-3",
}

// Analyzer finds waits after the last attempt.
var Analyzer = rule.New(Doc, run, fixedinterval.Analyzer, nojitter.Analyzer, equaljitter.Analyzer)

// run reports loops that ask for the number of the attempt in their head alone, and wait
// at the end of each turn. What waits for a state is left out: its last wait gives the
// state time to come.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Pure && !r.Waiting && !r.Weak && !r.WaitFirst && r.Loop != nil && len(r.Waits) > 0 && r.CheckedLate() {
			p.ReportRetry(r, rule.Medium, "waits once more after the last attempt of "+r.OpNames())
		}
	}
}
