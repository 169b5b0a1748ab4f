// Package unkeyed reports POST and PATCH requests that are retried without an
// idempotency key (FB1030).
//
// Experimental: what this package exports may change in any version.
package unkeyed

import (
	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Doc documents FB1030.
var Doc = &rule.Doc{
	ID:     "FB1030",
	Name:   "UnkeyedWrite",
	Title:  "POST or PATCH retried without an idempotency key",
	Remedy: "send one Idempotency-Key with all attempts, or do not retry the request",
	Text: `A POST whose response was lost may have been carried out. Repeating it charges the
card twice, unless both requests carry the same Idempotency-Key and the server honors it.

Reported are retries that reach a request whose method is POST or PATCH, with no header, field
or call in sight that names an idempotency key. The method is followed through helpers, fields,
builders and captured variables to the constant that sets it; where callers choose it, one
finding stands at the retry and names a caller that chooses a write. A round tripper or a
client's Do that repeats whatever it is given is reported by itself, as is a Do(method, path,
body) or one of a request type of one's own that has a body; where the package names
requests in a header before they are sent (X-Request-Id), that is a warning.

Not reported are retries before which a branch by the method keeps writes away, and those of what
was not carried out: after 429, a conflict, a connection that was refused or not dialed. Of a policy
that users may replace, the one that the package asks by default counts. A POST that
only reads (a search, a GraphQL query) is suppressed with a reason.`,
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

// run reports repetitions of a write, those of requests whose method a caller
// chooses, and calls into other packages that repeat what they are given.
func run(p *rule.Pass) {
	for _, rep := range p.Repeats() {
		if f := p.Fault(rep); f != nil {
			fault(p, rep, f)
		}
	}
	elsewhere(p)
	clients(p)
	rule.Report(p, table.Unkeyed)
}

// fault reports what is wrong with a repetition.
func fault(p *rule.Pass, rep *retryloop.Repeat, f *retryloop.Fault) {
	sure := rule.Sure(f.Sure)
	switch {
	case f.Caller != nil:
		at := analysis.RelatedInformation{Pos: f.Caller.Call.Pos(), Message: "the call that sends " + f.Caller.Send.Method}
		report(p, rep, sure, "retries whatever method it is given, "+f.Caller.Send.Method+" by "+name(f.Caller.Call.Parent())+" too, without an Idempotency-Key", at)
	case f.Open:
		if f.Guess {
			sure = rule.Low
		}
		report(p, rep, sure, "retries every request, whatever its method, without an Idempotency-Key")
	case rep.Region != nil:
		report(p, rep, sure, "retries "+f.Send.Method+" by "+rule.Ops(rep.Region)+" without an Idempotency-Key")
	default:
		report(p, rep, sure, "retries "+f.Send.Method+" through "+dataflow.Describe(rep.Call.Common())+" without an Idempotency-Key")
	}
}

// report reports a repetition: a region at its keyword, and another where the
// helper or the client is called.
func report(p *rule.Pass, rep *retryloop.Repeat, c rule.Confidence, message string, related ...analysis.RelatedInformation) {
	var f rule.Finding
	if rep.Region != nil {
		f = rule.RegionFinding(rep.Region, c, message)
	} else {
		callee := dataflow.Describe(rep.Call.Common())
		f = rule.Finding{Confidence: c, Pos: rep.Call.Pos(), Function: rule.FunctionName(rep.Call.Parent()), Message: message, Callees: []string{callee}}
	}
	f.Related = append(f.Related, related...)
	p.Report(f)
}
