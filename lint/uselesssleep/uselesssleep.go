// Package uselesssleep reports waits after the last attempt (FB1054).
//
// Experimental: what this package exports may change in any version.
package uselesssleep

import (
	"github.com/forbear-go/forbear/lint/equaljitter"
	"github.com/forbear-go/forbear/lint/fixedinterval"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/nojitter"
)

// Doc documents FB1054.
var Doc = &rule.Doc{
	ID:     "FB1054",
	Name:   "UselessSleep",
	Title:  "useless sleep after the last attempt",
	Remedy: "leave the loop before the wait when the last attempt has failed",
	Text: `When the last attempt has failed there is nothing to wait for: the caller waits the
longest backoff of all for an error that is known already.

Reported, as advice, are loops that count their attempts at the head only, and wait at the end
of every turn.`,
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

// run reports pure retries only: what goes on after a success may have a use
// for the wait.
// Loops that wait for a state are left out: their last wait gives the state time
// to come. Nothing breaks by such a wait, so it is a warning and never blocks a
// merge.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		if r.Pure && !r.Waiting && !r.Weak && r.CheckedLate() {
			p.ReportRegion(r, rule.Medium, "waits once more after the last attempt of "+rule.Ops(r), mend.Last(p, r)...)
		}
	}
}
