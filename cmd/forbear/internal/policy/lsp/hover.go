package lsp

import (
	"strings"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/check"
)

// hover says what the key at a place means, and what the findings on its line are
// about; nil where there is neither.
func (d *document) hover(at position) *hover {
	var parts []string
	h := &hover{Contents: markup{Kind: "markdown"}}
	if s, where := d.keyAt(at); s != "" {
		parts, h.Range = append(parts, s), &where
	}
	// Several findings about one rule differ in their messages alone.
	told := map[string]bool{}
	for i := range d.found {
		f := &d.found[i]
		if f.Line != at.Line+1 || len(told) == maxTold && !told[f.ID] {
			continue
		}
		parts = append(parts, explain(f, !told[f.ID]))
		told[f.ID] = true
	}
	if len(parts) == 0 {
		return nil
	}
	h.Contents.Value = strings.Join(parts, "\n\n---\n\n")
	return h
}

// keyAt returns what is known of the key at a place, or "".
func (d *document) keyAt(at position) (about string, where span) {
	if !d.policy || at.Line < 0 || at.Line >= len(d.lines) {
		return "", span{}
	}
	column := offset(d.lines[at.Line], at.Character)
	o := outlined(d.lines[:at.Line+1])
	for i, n := range o.nodes {
		if i == 0 || n.line != at.Line || n.name == listItem || column < n.start || column > n.end {
			continue
		}
		s := policySchema().at(o.path(i))
		if s == nil {
			return "", span{}
		}
		// What has a name of the user's is described by its section.
		text := s.about()
		if text == "" {
			return "", span{}
		}
		title := "**" + escape(n.name) + "**"
		if kind := s.detail(); kind != "" {
			title += ": " + kind
		}
		return title + "\n\n" + text, d.span(at.Line, n.start, n.end)
	}
	return "", span{}
}

// maxTold bounds the rules that one hover explains.
const maxTold = 5

// explain writes a finding, with what its rule says when that is wanted.
func explain(f *report.Finding, full bool) string {
	text := "**" + f.ID + "**"
	if f.Standard != "" {
		text += " (" + f.Standard + ")"
	}
	text += ": " + escape(f.Message)
	rule, ok := check.RuleOf(f.ID)
	if !ok || !full {
		return text
	}
	return text + "\n\n" + escape(rule.Summary) + "\n\nWhy: " + escape(rule.Why) + "\n\nFix: " + escape(rule.Fix)
}
