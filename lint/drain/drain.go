// Package drain reports responses that are neither drained nor closed before
// the next attempt (FB1052).
//
// Experimental: what this package exports may change in any version.
package drain

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/eval"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Doc documents FB1052.
var Doc = &rule.Doc{
	ID:     "FB1052",
	Name:   "ResponseNotClosed",
	Title:  "response body neither drained nor closed between attempts",
	Remedy: "drain and close the response body before the next attempt",
	Text: `A discarded response with an open body keeps its connection, so each retry opens
another one to a server that is already failing. Drain and close the body before the
next attempt.

Reported are retries on the status of a response where nothing in the loop closes the body
or receives the response.`,
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

// run looks at retries that a status leads to: only there has a failed attempt yielded
// a response whose body must be read and closed.
func run(p *rule.Pass) {
	for _, r := range p.Retries {
		if r.Loop == nil {
			continue
		}
		for _, op := range r.Ops {
			if yields(op) && !handled(r, op) && !closes(op, 0) && p.AfterAnswer(r, op) {
				c := rule.Sure(r.Pure && (eval.CalleePkg(op.Common()) == "net/http" || hasBody(op)))
				p.ReportRetry(r, c, "leaves the response of "+retry.Describe(op.Common())+" open before the next attempt")
				break
			}
		}
	}
}

// yields reports whether a call yields a response of net/http.
func yields(op ssa.CallInstruction) bool {
	for v := range op.Common().Signature().Results().Variables() {
		if retry.IsNamed(v.Type(), "net/http", "Response") {
			return true
		}
	}
	return false
}

func hasBody(op *ssa.Call) bool {
	fn := eval.Static(op.Common())
	return fn != nil && len(fn.Blocks) > 0
}

// handled reports whether the loop closes the response's body, or gives the response or
// its body to anything that may: a helper, a closure that has captured it. A function of
// package io reads a body and leaves it open. A body that is closed in some turns shows
// that the author knows.
func handled(r *retry.Retry, op *ssa.Call) bool {
	for c := range retry.Instrs[ssa.CallInstruction](r) {
		if c == ssa.CallInstruction(op) {
			continue
		}
		com := c.Common()
		_, isClosure := com.Value.(*ssa.MakeClosure)
		if isClosure || com.IsInvoke() && com.Method.Name() == "Close" {
			return true
		}
		given := func(a ssa.Value) bool {
			return retry.IsNamed(a.Type(), "net/http", "Response") || isBody(a) && eval.CalleePkg(com) != "io"
		}
		if slices.ContainsFunc(com.Args, given) {
			return true
		}
	}
	return false
}

// closes reports whether an operation of this package, or a function that it is given,
// closes the body of a response by itself.
func closes(op ssa.CallInstruction, depth int) bool {
	fn := eval.Static(op.Common())
	if fn == nil || len(fn.Blocks) == 0 {
		// What a caller hands over may close it.
		_, isParam := op.Common().Value.(*ssa.Parameter)
		return isParam
	}
	if depth > 3 {
		return false
	}
	for c := range retry.InstrsOf[ssa.CallInstruction](fn) {
		com := c.Common()
		if com.IsInvoke() && com.Method.Name() == "Close" || yields(c) && closes(c, depth+1) {
			return true
		}
	}
	return false
}

// isBody reports whether v is read from a field named Body.
func isBody(v ssa.Value) bool {
	u, ok := v.(*ssa.UnOp)
	return ok && retry.FieldName(u.X) == "Body"
}
