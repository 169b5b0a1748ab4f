package rule

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/dataflow"
	"github.com/forbear-go/forbear/lint/internal/send"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Report reports what the table of libraries says with verdict v, and returns a
// predicate on calls: whether one is of a method of what was reported where it was
// set up, so that the call itself needs no finding. The callee in the finding's
// identity comes from the entry, so that a renamed import does not change it.
func Report(p *Pass, v table.Verdict) (reported func(*ssa.CallCommon) bool) {
	found := table.Find(p.Pass, v)
	for _, m := range found {
		// A rule that has followed the request itself knows more of it.
		if v == table.Unkeyed && (namesKey(m.Scope) || p.foundIn(m.Node)) {
			continue
		}
		c, err := ParseConfidence(cmp.Or(m.Entry.Confidence, High.String()))
		// A poll may well have a fixed interval.
		if err != nil || v == table.Fixed && p.Polled(m.Node) {
			c = Low
		}
		p.Report(Finding{Confidence: c, Pos: m.Node.Pos(), End: m.Node.End(), Message: m.Entry.Message, Callees: []string{m.Entry.Name()}})
	}
	return func(c *ssa.CallCommon) bool {
		return c.Signature().Recv() != nil && slices.ContainsFunc(found, func(m table.Match) bool { return m.Entry.Covers(dataflow.CalleePkg(c)) })
	}
}

// namesKey reports whether a string of a declaration names an idempotency key. It
// looks at text alone, and so errs on the side of silence.
func namesKey(scope ast.Node) bool {
	for n := range ast.Preorder(scope) {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && send.IsKeyName(lit.Value) {
			return true
		}
	}
	return false
}

// foundIn reports whether the rule has reported something within a node.
func (p *Pass) foundIn(n ast.Node) bool {
	return slices.ContainsFunc(p.found, func(f *Finding) bool { return n.Pos() <= f.Pos && f.Pos < n.End() })
}
