// Package fixedinterval reports retries that wait the same time after every
// failure, or not at all (FB1001).
//
// Experimental: what this package exports may change in any version.
package fixedinterval

import (
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1001.
var Doc = &rule.Doc{
	ID:     "FB1001",
	Name:   "FixedInterval",
	Title:  "fixed-interval retry",
	Remedy: "wait rand.N(min(ceiling, base<<attempt)), or use forbear",
	Text: `Clients that fail together and wait the same time come back together: a fixed
interval keeps an overloaded service overloaded. Retries wait a random time between zero
and a ceiling that doubles with each attempt.

Reported are loops (and recursions) that run again because a call failed and that wait a
constant, a parameter or a field that the loop does not change, or do not wait; loops that restart
something that runs until it fails; and constructors of retry libraries with such a schedule. Not
reported are polling, tickers, pacing, periodic jobs, lock and compare-and-swap loops, and waits
that are chosen elsewhere.`,
	Bad: `for range 3 {
	if resp, err = client.Do(req); err == nil {
		return resp, nil
	}
	time.Sleep(2 * time.Second)
}`,
	Good: `r := forbear.Must(forbear.New("payments", forbear.Policy{}))
client := &http.Client{Transport: httpretry.NewTransport(nil, r)}
resp, err := client.Do(req)`,
	Standard: "R-1",
}

// Analyzer finds fixed-interval retries.
var Analyzer = rule.New(Doc, run)

// run reports waits that are the same every time, and none at all. A wait that is
// decided elsewhere is never reported: a caller may pass full jitter. Without a wait, a
// retry is sure only when it counts its attempts at a boundary.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		switch r.Delay.Class {
		case retry.Fixed: // parameters and fields too: the retry does not change them
			message := "retries " + r.OpNames() + " on failure and waits " + rule.Wait(r) + " every time"
			if r.Delay.Mixed {
				message = "retries " + r.OpNames() + " after the time that the server asks for, and otherwise always after the same time"
			}
			p.ReportRetry(r, rule.RetryConfidence(r), message, mend.Jitter(p, r)...)
		case retry.Immediate: // the shortest fixed interval
			if r.Boundary == retry.Remote && r.Bound.Counter && r.Pure {
				p.ReportRetry(r, rule.RetryConfidence(r), "retries "+r.OpNames()+" on failure without waiting at all")
			}
		}
	}
	rule.Report(p, table.Fixed)
}
