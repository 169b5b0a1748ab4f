// Package fixedinterval reports retries that wait the same time after every
// failure, or not at all (FB1001).
//
// Experimental: what this package exports may change in any version.
package fixedinterval

import (
	"slices"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
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

Reported are loops (and recursions) that are entered again because a call failed and that
wait a constant, a parameter or a field that the loop does not change, or that do not
wait at all; loops that start something again which runs until it fails; constructors of retry
libraries that build such a schedule; and calls of retry helpers of other modules whose code
does the same with what it is given. Not reported are polling, tickers, pacing, jobs that are
done once in a while, lock and compare-and-swap loops, and waits that are decided elsewhere.`,
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

// run reports waits that are the same every time, none at all among them, and
// constants that a server's word falls back on. A loop without a wait is surer
// when it counts its attempts at a boundary.
// After the server's word, a constant is only the fallback, so that finding is a
// warning. Pluggable waits are never reported: a caller may pass full jitter.
func run(p *rule.Pass) {
	for _, r := range slices.Concat(p.Regions, p.Restarts) {
		switch r.Delay.Class {
		// Parameters and fields count: the loop does not change them.
		case fact.Fixed:
			p.ReportRegion(r, rule.RegionConfidence(r), "retries "+rule.Ops(r)+" on failure and waits "+rule.Wait(r)+" every time", mend.Jitter(p, r)...)
		// No wait is the shortest fixed interval.
		case fact.Immediate:
			c := rule.RegionConfidence(r)
			if r.Boundary != send.Remote || !r.Bound.Counter {
				c = min(c, rule.Medium)
			}
			p.ReportRegion(r, c, "retries "+rule.Ops(r)+" on failure without waiting at all", mend.Wait(p, r)...)
		case fact.Server:
			if r.Delay.Mixed {
				p.ReportRegion(r, min(rule.Medium, rule.RegionConfidence(r)), "retries "+rule.Ops(r)+" after what the server says, and otherwise after a fixed interval")
			}
		}
	}
	setUp := rule.Report(p, table.Fixed)
	for c, w := range p.HelperWaits() {
		if setUp(c.Common()) {
			continue
		}
		if helper := dataflow.Describe(c.Common()); w.Class == fact.Fixed && !w.Polls {
			p.ReportAt(c, rule.Sure(w.Sure), "retries through "+helper+", which waits the same time after every failure", helper)
		}
	}
}
