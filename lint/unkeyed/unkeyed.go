// Package unkeyed reports POST and PATCH requests that are retried without an
// idempotency key (FB1030).
package unkeyed

import (
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
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
		if !r.Pure || send.Keyed(r.Fn) || r.OnlyRefused() {
			continue
		}
		if s := firstWrite(r.Sends()); s != nil {
			sure := s.Depth <= 1 && !r.ReadOnly() && !r.Waiting
			p.ReportRegion(r, rule.Sure(sure), "retries "+s.Method+" by "+rule.Ops(r)+" without an Idempotency-Key")
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
	for c, op := range p.RetriedCallbacks() {
		if send.Keyed(c.Parent()) {
			continue
		}
		// The finding stands at the call of the helper, where the retry begins. A write
		// that is found through helpers, or under a name that reads, is less sure.
		if s := firstWrite(p.Known.Local(op).Sends); s != nil {
			helper := dataflow.Describe(c.Common())
			sure := s.Depth <= 1 && !send.ReadOnlyName(op)
			p.ReportAt(c, rule.Sure(sure), "retries "+s.Method+" through "+helper+" without an Idempotency-Key", helper)
		}
	}
}

// firstWrite returns the first write without a key, or nil. One is enough for a
// finding.
func firstWrite(sends []fact.Send) *fact.Send {
	for i, s := range sends {
		if !s.Keyed && writes(s.Method) {
			return &sends[i]
		}
	}
	return nil
}

// writes reports whether a method must not be repeated without a key.
func writes(method string) bool { return method == "POST" || method == "PATCH" }
