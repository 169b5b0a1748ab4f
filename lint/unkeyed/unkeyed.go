// Package unkeyed reports POST and PATCH requests that are retried without an
// idempotency key (FB1030).
package unkeyed

import (
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/fact"
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
client's Do that repeats whatever it is given is reported by itself.

Not reported are retries before which a branch looks at the method, and those of what was not
carried out: after 429, a conflict, a connection that was refused or not dialed. A POST that
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

// run reports repetitions of a write, and those of requests whose method a
// caller chooses.
// PUT and DELETE are idempotent by RFC 9110 section 9.2.2 and need no key.
func run(p *rule.Pass) {
	for _, rep := range p.Repeats() {
		if rep.ByMethod == retryloop.Chosen {
			continue
		}
		s := firstWrite(rep.Sends)
		if s == nil {
			chosen(p, rep)
			continue
		}
		by := ""
		switch {
		case rep.Region != nil:
			by = " by " + rule.Ops(rep.Region)
		default:
			by = " through " + dataflow.Describe(rep.Call.Common())
		}
		report(p, rep, rule.Sure(plain(rep, *s) && reached(rep, *s)), "retries "+s.Method+by+" without an Idempotency-Key")
	}
	callers(p)
	clients(p)
	table.Report(p, table.Unkeyed)
}

// plain reports whether nothing speaks against a finding: names of reading or of
// waiting, or a policy that may look at the method.
func plain(rep *retryloop.Repeat, s fact.Send) bool {
	return !s.Reads && !rep.ReadOnly() && rep.ByMethod == retryloop.Blind && (rep.Region == nil || !rep.Region.Waiting)
}

// reached reports whether each attempt reaches the write for certain: it is
// near, or all that is sent is writes. An operation that sends others too, deep
// inside, may do so on the way to a read, as for a token.
func reached(rep *retryloop.Repeat, s fact.Send) bool {
	return s.Depth <= 1 || !slices.ContainsFunc(rep.Sends, func(o fact.Send) bool { return !writes(o.Method) })
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
