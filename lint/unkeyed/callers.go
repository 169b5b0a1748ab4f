package unkeyed

import (
	"regexp"

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
	for _, fn := range p.Funcs {
		for c := range dataflow.Instrs[*ssa.Call](fn) {
			if method := p.RetriedMethod(c); (method == "POST" || method == "PATCH") && !p.MentionsKey(fn) {
				conf := rule.High
				if send.ReadOnlyName(fn) {
					conf = rule.Medium
				}
				p.Report(rule.Finding{
					Confidence: conf, Pos: c.Pos(), Function: rule.FunctionName(fn),
					Message: dataflow.Describe(c.Common()) + " retries this " + method + " without an Idempotency-Key",
					Callees: []string{dataflow.Describe(c.Common())},
				})
			}
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
			c := rule.Medium
			if r.Fn.Name() == "RoundTrip" {
				c = rule.High
			}
			p.ReportRegion(r, c, "retries every request, whatever its method, without an Idempotency-Key")
			break
		}
	}
}

// passesOn reports whether op sends a request that the function was given.
// A request that the function has built itself is judged by its method.
func passesOn(r *retryloop.Region, op *ssa.Call) bool {
	for _, a := range op.Common().Args {
		if param, ok := a.(*ssa.Parameter); ok && dataflow.IsNamed(param.Type(), "net/http", "Request") {
			return true
		}
	}
	return false
}
