// Package unbounded reports retries forever (FB1010).
//
// Experimental: what this package exports may change in any version.
package unbounded

import (
	"regexp"

	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1010.
var Doc = &rule.Doc{
	ID:     "FB1010",
	Name:   "Unbounded",
	Title:  "unbounded retry",
	Remedy: "stop after a number of attempts, and return the last error",
	Text: `A retry needs an end: a number of attempts, or a time limit. Without one a permanent
fault becomes permanent load, and the caller never learns of it.

A caller's context is not a limit, since it may never end, and a channel that others close is not
either. Both lower the confidence, as do names of supervisors, which are meant to run on.`,
	Bad: `for {
	if err := send(); err == nil {
		return nil
	}
	time.Sleep(wait())
}`,
	Good: `for range 4 {
	if err = send(); err == nil {
		return nil
	}
	time.Sleep(wait())
}
return err`,
	Standard: "R-2",
}

// Analyzer finds retries forever.
var Analyzer = rule.New(Doc, run)

// supervisor marks functions that keep something going for as long as the
// program runs: that they never give up is their purpose.
// The list is wide on purpose: a hint that is wrong costs trust.
var supervisor = regexp.MustCompile(`(?i)run|start|serve|loop|main|daemon|supervis|worker|keep|listen|consume|watch|forever|connect`)

// run reports loops that only a success ends. The caller's context or a channel
// that others close may be a limit, and a supervisor needs none; these are hints.
// Confidence never exceeds medium: that nothing ends a loop cannot be proved
// from one function.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if !r.Pure || r.Bound.Counter || r.Bound.Deadline || r.Weak {
			continue
		}
		c := rule.Medium
		if r.Bound.Context || r.Bound.Stop || r.Waiting || r.Boundary == retry.Local || r.Loop == nil || supervisor.MatchString(r.Fn.Name()) {
			c = rule.Low
		}
		p.ReportRetry(r, c, "retries "+r.OpNames()+" without a limit of attempts or time")
	}
	rule.Report(p, table.Unbounded)
}
