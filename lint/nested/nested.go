// Package nested reports retries of something that retries itself (FB1040).
//
// Experimental: what this package exports may change in any version.
package nested

import (
	"fmt"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/bound"
	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Doc documents FB1040.
var Doc = &rule.Doc{
	ID:     "FB1040",
	Name:   "NestedRetries",
	Title:  "nested retrying layers",
	Remedy: "retry in one layer, and switch the retries of the other one off",
	Text: `Attempts multiply: three attempts of something that makes three attempts are nine, and
with a third layer 27. Retry in one layer, the one right above the dependency.

Reported are retries whose operation is known to retry, by its source, by the fact of another
package, or by the table of clients that retry by default; with the product when the counts
are constant.`,
	Bad: `for range 3 {
	err = fetchWithRetry() // four attempts
}`,
	Good:     `err = fetchWithRetry()`,
	Standard: "R-2",
}

// Analyzer finds nested retries.
var Analyzer = rule.New(Doc, run)

// run reports a retry around a client, a helper or a loop that retries by
// itself. The product of the attempts is what the dependency sees in an outage.
// Medium is the rule, because the inner count is often a default that the code
// has changed. A loop that waits for a state is no layer, and neither is a retry
// helper: its callback decides.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		if !r.Pure || r.Waiting || r.Weak {
			continue
		}
		if in := r.Inside(); in != nil && !in.Waiting {
			p.ReportRegion(r, rule.Medium, "retries what is retried inside already"+product(r.Bound, int(in.Bound.Limit)))
			continue
		}
		// A helper that retries its callback is no inner layer by itself.
		for _, op := range r.Ops {
			if s := p.Known.Of(op.Common()); s != nil && s.Retries && s.Retrier == nil {
				c := rule.Sure(r.Spoken && r.Boundary == send.Remote && r.Bound.Counter)
				p.ReportRegion(r, c, "retries "+dataflow.Describe(op.Common())+", which retries itself"+product(r.Bound, s.Attempts))
				break
			}
			// The client's default is taken, since its options are set elsewhere.
			if n, ok := retryloop.RetryingSDK(op.Common()); ok {
				p.ReportRegion(r, rule.Medium, "retries "+dataflow.Describe(op.Common())+", whose client retries by default"+product(r.Bound, n))
				break
			}
		}
	}
	for c, op := range p.RetriedCallbacks() {
		callback(p, c, op)
	}
}

// product says how many attempts there may be in all.
// It is "" when a count is not constant: a guess would be quoted as a fact.
func product(b bound.Bound, inner int) string {
	if !b.Known || inner <= 1 {
		return ""
	}
	return fmt.Sprintf(": %d x %d = %d attempts", b.Limit, inner, int(b.Limit)*inner)
}

// callback reports a function that is handed to a retry helper and calls a
// retrying client or helper.
// A failure that is marked as permanent is not tried again by the helper. One
// finding for each call of the helper is enough.
func callback(p *rule.Pass, c *ssa.Call, op *ssa.Function) {
	for inner := range dataflow.Instrs[*ssa.Call](op) {
		if dataflow.CalleeName(inner.Common()) == "Permanent" {
			continue
		}
		// The source of a helper says more than the table, but a client of the table has
		// none here: both are asked.
		n, sdk := retryloop.RetryingSDK(inner.Common())
		s := p.Known.Of(inner.Common())
		if !sdk && (s == nil || !s.Retries) {
			continue
		}
		message := dataflow.Describe(c.Common()) + " retries " + dataflow.Describe(inner.Common()) + ", which retries itself"
		if sdk {
			message += fmt.Sprintf(" (%d attempts by default)", n)
		}
		p.ReportAt(c, rule.Medium, message)
		return
	}
}
