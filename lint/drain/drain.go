// Package drain reports responses that are neither drained nor closed before
// the next attempt (FB1052).
//
// Experimental: what this package exports may change in any version.
package drain

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/mend"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/internal/send"
)

// Doc documents FB1052.
var Doc = &rule.Doc{
	ID:     "FB1052",
	Name:   "ResponseNotClosed",
	Title:  "response body neither drained nor closed between attempts",
	Remedy: "drain and close the response body before the next attempt",
	Text: `A response that is thrown away with its body open keeps its connection: each retry
opens another one, against a server that is failing already. Drain and close the body before the
next attempt.

Reported are retries on the status of a response in which nothing inside the loop closes the
body or is given the response.`,
	Bad: `if resp.StatusCode >= 500 {
	time.Sleep(wait())
	continue
}`,
	Good: `if resp.StatusCode >= 500 {
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	resp.Body.Close()
	time.Sleep(wait())
	continue
}`,
	Standard: "R-1",
}

// Analyzer finds responses that are left open.
var Analyzer = rule.New(Doc, run)

// run looks at regions that test a status: only there has a failed attempt
// yielded a response whose body must be read and closed.
// The first open response is enough for a finding: one mend in the loop usually
// closes all.
func run(p *rule.Pass) {
	for _, r := range p.Regions {
		if r.Loop == nil || !r.OnStatus() {
			continue
		}
		for _, op := range r.Responses() {
			if !handled(r, op) && !closes(p, op, 0) {
				p.ReportRegion(r, rule.Sure(r.Pure && open(p, op)), "leaves the response of "+dataflow.Describe(op.Common())+" open before the next attempt", mend.Drain(p, r, op)...)
				break
			}
		}
	}
}

// handled reports whether the loop closes the response's body, or gives the
// response or its body to anything that may.
// Any helper that is given the response may close it, and so may a closure that
// has captured it. A function of package io does not: it reads a body and leaves
// it open, so io.Copy alone is no close. It does not check on which path the
// close stands. A body that is closed in some turns shows that the author knows,
// and a finding there would too often be false.
func handled(r *retryloop.Region, op *ssa.Call) bool {
	// Deferred calls and goroutines count here as well: FB1053 reports the former,
	// and one finding for each bug is enough.
	for c := range retryloop.Instrs[ssa.CallInstruction](r) {
		if c == ssa.CallInstruction(op) {
			continue
		}
		com := c.Common()
		_, isClosure := com.Value.(*ssa.MakeClosure)
		if isClosure || com.IsInvoke() && com.Method.Name() == "Close" {
			return true
		}
		given := func(a ssa.Value) bool {
			return dataflow.IsNamed(a.Type(), "net/http", "Response") || isBody(a) && dataflow.CalleePkg(com) != "io"
		}
		if slices.ContainsFunc(com.Args, given) {
			return true
		}
	}
	return false
}

// closes reports whether an operation of this package closes the body of a
// response by itself, as one does that reads it to the end.
func closes(p *rule.Pass, op ssa.CallInstruction, depth int) bool {
	fn := p.Known.Body(op.Common())
	if fn == nil || depth > 3 {
		return false
	}
	for c := range dataflow.Instrs[ssa.CallInstruction](fn) {
		com := c.Common()
		if com.IsInvoke() && com.Method.Name() == "Close" || send.Yields(com) && closes(p, c, depth+1) {
			return true
		}
	}
	return false
}

// open reports whether an operation certainly yields an open response: one of
// net/http, or one of this package, which was looked into. What another package
// does with the body before it returns is not known.
func open(p *rule.Pass, op *ssa.Call) bool {
	return dataflow.CalleePkg(op.Common()) == "net/http" || p.Known.Body(op.Common()) != nil
}

// isBody reports whether v is read from a field named Body.
func isBody(v ssa.Value) bool {
	u, ok := v.(*ssa.UnOp)
	if !ok {
		return false
	}
	_, isAddr := u.X.(*ssa.FieldAddr)
	return isAddr && dataflow.FieldOf(u.X) == "Body"
}
