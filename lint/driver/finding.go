package driver

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/config"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// finding is a finding with what the driver decides by.
// The report knows neither: it has the confidence as text, and the callees only
// as a part of the identity.
type finding struct {
	report.Finding
	confidence rule.Confidence
	callees    []string
	within     string         // the rule whose finding at the same place has the same cause
	module     string         // of the package
	waiver     *config.Waiver // that lifts it, or nil
}

// finding turns a rule's finding into one of the report, with places in files
// instead of positions. The files have their full names: relativize comes later,
// since the cache serves runs in any folder.
// A directive in the source wins over a waiver, because it stands beside the
// code. Code that cgo has made gets no fix: an edit there would be lost at the
// next build.
func (r *runner) finding(p *packages.Package, f *rule.Finding) *finding {
	at := r.place(f.Pos, f.End, "")
	out := &finding{confidence: f.Confidence, callees: f.Callees, within: f.Within, waiver: f.Waived, Finding: report.Finding{
		ID: f.Rule, Standard: f.Standard, Confidence: f.Confidence.String(), Message: f.Message,
		Package: p.PkgPath, Function: f.Function,
		File: at.File, Line: at.Line, Column: at.Column, EndLine: at.EndLine, EndColumn: at.EndColumn,
	}}
	if d, ok := lint.Explain(f.Rule); ok {
		out.Standard = cmp.Or(out.Standard, d.Standard)
		out.Hint, out.URL = d.Remedy, lint.HelpURL(d.ID)
	}
	if p.Module != nil {
		out.module = p.Module.Path
	}
	switch {
	case f.Suppressed != nil:
		out.Suppressed, out.InSource = f.Suppressed.Reason, true
	case f.Waived != nil:
		out.Suppressed = fmt.Sprintf("waiver %s until %s: %s", f.Waived.Name(), f.Waived.Expires, f.Waived.Reason)
	}
	for _, rel := range f.Related {
		if rel.Pos.IsValid() {
			out.Related = append(out.Related, r.place(rel.Pos, rel.End, rel.Message))
		}
	}
	for _, fix := range f.Fixes {
		if r.l.made[r.l.fset.PositionFor(f.Pos, false).Filename] {
			break
		}
		x := report.Fix{Message: fix.Message}
		for _, e := range fix.TextEdits {
			from, to := r.l.position(e.Pos), r.l.position(max(e.Pos, e.End)) // an insertion may have no end
			at := report.Place{File: from.Filename, Line: from.Line, Column: from.Column, EndLine: to.Line, EndColumn: to.Column}
			x.Edits = append(x.Edits, report.Edit{Place: at, Start: from.Offset, End: to.Offset, NewText: string(e.NewText)})
		}
		out.Fixes = append(out.Fixes, x)
	}
	return out
}

// place is a position. Columns count bytes.
// An end before the position means that there is none, and is left at zero.
func (r *runner) place(pos, end token.Pos, msg string) report.Place {
	at := r.l.position(pos)
	p := report.Place{File: at.Filename, Line: at.Line, Column: at.Column, Message: msg}
	if end > pos {
		e := r.l.position(end)
		p.EndLine, p.EndColumn = e.Line, e.Column
	}
	return p
}

// relativize makes the names of f's files relative to the working directory.
func (l *loaded) relativize(f *finding) {
	f.File = l.rel(f.File)
	for i := range f.Related {
		f.Related[i].File = l.rel(f.Related[i].File)
	}
	for _, fix := range f.Fixes {
		for i := range fix.Edits {
			fix.Edits[i].File = l.rel(fix.Edits[i].File)
		}
	}
}

// identify gives each finding an identity that survives moved lines: the rule,
// the module of the package, the package, the function, what is called there, and an ordinal
// among equals.
// Lines are no part of it, so that a baseline survives an edit further up. found
// must be in the order of the report: the ordinal depends on it.
func identify(found []*finding) {
	seen := map[string]int{}
	for _, f := range found {
		callees := slices.Sorted(slices.Values(f.callees))
		// A NUL byte cannot occur in a name, so that two lists of names cannot collide.
		key := strings.Join([]string{f.ID, f.module, f.Package, f.Function, strings.Join(callees, ",")}, "\x00")
		f.Identity = fmt.Sprintf("%s\x00%d", key, seen[key])
		seen[key]++
	}
}

// reportRules is the documentation of the rules, as reports have it.
// Only the FB1 rules may be waived; those about directives guard the waiving
// itself.
func reportRules() []report.Rule {
	var rules []report.Rule
	for _, d := range lint.Rules() {
		rules = append(rules, report.Rule{
			ID: d.ID, Name: d.Name, Standard: d.Standard, Severity: report.Error, Summary: d.Title,
			Why: d.Text, Fix: d.Remedy, Bad: d.Bad, Good: d.Good, URL: lint.HelpURL(d.ID), Waivable: strings.HasPrefix(d.ID, "FB1"),
		})
	}
	return rules
}
