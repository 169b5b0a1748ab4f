// Package unkeyed reports POST and PATCH requests that are retried without an
// idempotency key (FB1030).
package unkeyed

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1030.
var Doc = &rule.Doc{
	ID:    "FB1030",
	Name:  "UnkeyedWrite",
	Title: "POST or PATCH retried without an idempotency key",
	Text: `A POST whose response was lost may have been carried out. Repeating it charges the
card twice, unless both requests carry the same Idempotency-Key and the server honors it.

Reported are retries that reach a request whose method is POST or PATCH by constant,
directly or through helpers, with no header, field or call in sight that names an
idempotency key. A retry of nothing but 429 is not reported: what was refused was not carried
out. A POST that only reads (a search, a GraphQL query) is suppressed with a
reason.`,
	Bad: `for range 3 {
	req, _ := http.NewRequest("POST", url, bytes.NewReader(body))
	if resp, err = client.Do(req); err == nil {
		break
	}
	time.Sleep(wait())
}`,
	Good: `key := uuid.NewString()
for range 3 {
	req, _ := http.NewRequest("POST", url, bytes.NewReader(body))
	req.Header.Set("Idempotency-Key", key)
	if resp, err = client.Do(req); err == nil {
		break
	}
	time.Sleep(wait())
}`,
	Standard: "R-6",
}

// Analyzer finds writes that are retried without a key.
var Analyzer = rule.New(Doc, run)

// run reports writes that a region repeats, that a helper repeats, and whose
// method a caller chooses for code that repeats it.
// PUT and DELETE are idempotent by RFC 9110 section 9.2.2 and need no key. A
// write that is found two helpers deep may not be reached in each attempt, so it
// is less sure, and so is one whose name says that it only reads.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		if !r.Pure || r.Keyed() || r.OnlyRefused() {
			continue
		}
		// The first write without a key is enough for a finding.
		for _, s := range r.Sends() {
			if s.Keyed || s.Method != "POST" && s.Method != "PATCH" {
				continue
			}
			c := rule.High
			if s.Depth > 1 || r.ReadOnly() || r.Waiting {
				c = rule.Medium
			}
			p.ReportRegion(r, c, "retries "+s.Method+" by "+rule.Ops(r)+" without an Idempotency-Key")
			break
		}
	}
	callbacks(p)
	callers(p)
	wrappers(p)
	table.Report(p, table.Unkeyed)
}

// callbacks reports writes inside a function that is handed to a helper which
// calls it again when it fails.
// A key that the calling function mentions counts, since the callback may have
// captured it.
func callbacks(p *rule.Pass) {
	for _, fn := range p.Funcs {
		for c := range dataflow.Instrs[*ssa.Call](fn) {
			op := p.RetriedCallback(c)
			if op == nil || p.MentionsKey(fn) {
				continue
			}
			report(p, c, op)
		}
	}
}

// report reports the first write of a callback that has no key. A write that is
// found through helpers, or under a name that reads, is less sure.
// The finding stands at the call of the helper, where the retry begins.
func report(p *rule.Pass, c *ssa.Call, op *ssa.Function) {
	for _, s := range p.Local(op).Sends {
		if s.Keyed || s.Method != "POST" && s.Method != "PATCH" {
			continue
		}
		conf := rule.High
		if s.Depth > 1 || send.ReadOnlyName(op) {
			conf = rule.Medium
		}
		p.Report(rule.Finding{
			Confidence: conf, Pos: c.Pos(), End: token.NoPos, Function: rule.FunctionName(c.Parent()),
			Message: "retries " + s.Method + " through " + dataflow.Describe(c.Common()) + " without an Idempotency-Key",
			Callees: []string{dataflow.Describe(c.Common())},
		})
		return
	}
}
