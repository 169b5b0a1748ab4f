package driver

import (
	"go/token"
	"slices"

	"github.com/forbear-go/forbear/internal/report"
)

// fold makes one finding of those that have one cause: what a rule has found within
// the finding of another becomes a related place of that one. rules are the findings
// as the rules left them, in the same order.
//
// One fix does for both, so that they count once. Only what counts is folded, into
// what counts: a finding whose principal is suppressed, known to the baseline or not
// shown stays, and one that is suppressed itself adds nothing.
func fold(found []report.Finding, rules []*finding) (kept []report.Finding) {
	type key struct {
		rule string
		at   token.Pos
	}
	principals := map[key]*report.Finding{}
	for i, f := range rules {
		if f.of.Within == "" && found[i].Suppressed == "" {
			principals[key{f.ID, f.of.Pos}] = &found[i]
		}
	}
	folded := map[int]bool{}
	for i, f := range found {
		p := principals[key{rules[i].of.Within, rules[i].of.Pos}]
		if p == nil || f.Suppressed != "" {
			continue
		}
		folded[i] = true
		p.Related = append(p.Related, report.Place{
			File: f.File, Line: f.Line, Column: f.Column, EndLine: f.EndLine, EndColumn: f.EndColumn, Message: f.ID + " too: " + f.Message,
		})
		p.Fixes = slices.Concat(p.Fixes, f.Fixes)
		p.Covers = append(p.Covers, f.Fingerprint())
	}
	for i, f := range found {
		if !folded[i] {
			kept = append(kept, f)
		}
	}
	return kept
}
