package unkeyed

import (
	"regexp"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// callers reports calls that hand the method POST or PATCH to a function which
// retries whatever method it is given.
// The method is known only at the call, so the finding stands there and not in
// the function that retries.
func callers(p *rule.Pass) {
	for c := range p.Calls() {
		if method := p.RetriedMethod(c); writes(method) && !send.Keyed(c.Parent()) {
			callee := dataflow.Describe(c.Common())
			p.ReportAt(c, rule.Sure(!send.ReadOnlyName(c.Parent())), callee+" retries this "+method+" without an Idempotency-Key", callee)
		}
	}
}

// looksAt marks what a wrapper reads before it repeats a request: its method, or
// its key.
// A wrapper that reads either has thought of writes, and is left alone.
var looksAt = regexp.MustCompile(`(?i)^(Method|MethodGet|GET|idempoten.*|.*idempoten.*)$`)

// wrappers reports functions that retry any request they are given without a
// look at its method: round trippers for certain, others with less confidence,
// since their callers may send none but safe requests.
// A retry of nothing but 429 is safe for writes too. One finding for each region
// is enough.
func wrappers(p *rule.Pass) {
	for _, r := range p.Regions {
		if r.Loop == nil || !r.Pure || r.Mentions(looksAt) || r.OnlyRefused() {
			continue
		}
		for _, op := range r.Ops {
			if dataflow.CalleePkg(op.Common()) != "net/http" || !passesOn(r, op) {
				continue
			}
			p.ReportRegion(r, rule.Sure(r.Fn.Name() == "RoundTrip"), "retries every request, whatever its method, without an Idempotency-Key")
			break
		}
	}
}

// passesOn reports whether op sends a request that the function was given.
// A request that the function has built itself is judged by its method.
func passesOn(r *retryloop.Region, op *ssa.Call) bool {
	return slices.ContainsFunc(op.Common().Args, func(a ssa.Value) bool {
		_, isParam := a.(*ssa.Parameter)
		return isParam && dataflow.IsNamed(a.Type(), "net/http", "Request")
	})
}
