package rule

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/forbear-go/forbear/lint/internal/ablate"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/retry"
	"github.com/forbear-go/forbear/lint/internal/table"
)

// Report reports what the table of libraries says with verdict v. The callee in the
// finding's identity comes from the entry, so that a renamed import does not change
// it.
func Report(p *Pass, v table.Verdict) {
	if !ablate.On("table") {
		return
	}
	for _, m := range table.Find(p.Pass, v) {
		// A rule that has followed the request itself knows more of it.
		if v == table.Unkeyed && (namesKey(m.Scope) || p.foundIn(m.Node) || p.ChosenByMethod("CheckRetry")) {
			continue
		}
		c, err := ParseConfidence(cmp.Or(m.Entry.Confidence, High.String()))
		if err != nil || v == table.Fixed && p.Polled(m.Node) { // a poll may well have a fixed interval
			c = Low
		}
		p.Report(Finding{Confidence: c, Pos: m.Node.Pos(), End: m.Node.End(), Message: m.Entry.Message, Callees: []string{m.Entry.Name()}})
	}
}

// IsKeyName reports whether a header or a field is named for an idempotency key: by
// that word, or by the settings. Upper and lower case are the same.
func IsKeyName(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "idempoten") ||
		slices.ContainsFunc(config.Current().KeyHeaders, func(name string) bool { return strings.Contains(s, strings.ToLower(name)) })
}

// namesKey reports whether a string of a declaration names an idempotency key. It
// looks at text alone, and so errs on the side of silence.
func namesKey(scope ast.Node) bool {
	for n := range ast.Preorder(scope) {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && IsKeyName(lit.Value) {
			return true
		}
	}
	return false
}

// ChosenByMethod reports whether a function that the package puts into a field of that
// name looks at the method of a request: such a policy may keep writes from being
// repeated.
func (p *Pass) ChosenByMethod(field string) bool {
	for _, fn := range p.Funcs {
		for st := range retry.InstrsOf[*ssa.Store](fn) {
			if field == "" || retry.FieldName(st.Addr) != field {
				continue
			}
			if policy := retry.FuncOf(st.Val); policy != nil && retry.MentionedIn(policy, func(name string) bool { return name == "Method" }, 1) {
				return true
			}
		}
	}
	return false
}

// foundIn reports whether the rule has reported something within a node.
func (p *Pass) foundIn(n ast.Node) bool {
	return slices.ContainsFunc(p.found, func(f *Finding) bool { return n.Pos() <= f.Pos && f.Pos < n.End() })
}
