package driver

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// finding is a finding as reports have it, and as the rule left it.
type finding struct {
	report.Finding
	of *rule.Finding
	in *packages.Package
}

// finding turns a rule's finding into one of the report, with places in files
// instead of positions. A directive in the source wins over a waiver, because it
// stands beside the code. Code that cgo has made gets no fix: an edit there would
// be lost at the next build.
func (l *loaded) finding(p *packages.Package, f *rule.Finding) *finding {
	at := l.place(f.Pos, f.End, "")
	out := &finding{of: f, in: p, Finding: report.Finding{
		ID: f.Rule, Standard: f.Standard, Confidence: f.Confidence.String(), Message: f.Message,
		Package: p.PkgPath, Function: f.Function,
		File: at.File, Line: at.Line, Column: at.Column, EndLine: at.EndLine, EndColumn: at.EndColumn,
	}}
	if d, ok := lint.Explain(f.Rule); ok {
		out.Standard = cmp.Or(out.Standard, d.Standard)
		out.Hint, out.URL = d.Remedy, lint.HelpURL(d.ID)
	}
	switch {
	case f.Suppressed != nil:
		out.Suppressed, out.InSource = f.Suppressed.Reason, true
	case f.Waived != nil:
		out.Suppressed = fmt.Sprintf("waiver %s until %s: %s", f.Waived.Name(), f.Waived.Expires, f.Waived.Reason)
	}
	for _, rel := range f.Related {
		if rel.Pos.IsValid() {
			out.Related = append(out.Related, l.place(rel.Pos, rel.End, rel.Message))
		}
	}
	if !l.made[l.fset.PositionFor(f.Pos, false).Filename] {
		for _, fix := range f.Fixes {
			out.Fixes = append(out.Fixes, l.fix(fix))
		}
	}
	return out
}

// fix is a fix as reports have it.
func (l *loaded) fix(fix analysis.SuggestedFix) report.Fix {
	x := report.Fix{Message: fix.Message}
	for _, e := range fix.TextEdits {
		from, to := l.position(e.Pos), l.position(max(e.Pos, e.End)) // an insertion may have no end
		at := report.Place{File: l.rel(from.Filename), Line: from.Line, Column: from.Column, EndLine: to.Line, EndColumn: to.Column}
		x.Edits = append(x.Edits, report.Edit{Place: at, Start: from.Offset, End: to.Offset, NewText: string(e.NewText)})
	}
	return x
}

// position is where a position was written. Line directives count in what cgo has
// made only: in a file written by hand one may point anywhere.
func (l *loaded) position(p token.Pos) token.Position {
	at := l.fset.PositionFor(p, false)
	if l.made[at.Filename] {
		at = l.fset.PositionFor(p, true)
	}
	return at
}

// place is a position. Columns count bytes. An end that is not behind the position
// means that there is none, and is left at zero.
func (l *loaded) place(pos, end token.Pos, msg string) report.Place {
	at := l.position(pos)
	p := report.Place{File: l.rel(at.Filename), Line: at.Line, Column: at.Column, Message: msg}
	if end > pos {
		e := l.position(end)
		p.EndLine, p.EndColumn = e.Line, e.Column
	}
	return p
}

// identify sorts findings, and gives each an identity that survives moved lines:
// the rule, the module, the package, the function, what is called there, and an
// ordinal among equals. It must come before any finding is left out, so that
// ordinals do not depend on flags.
func identify(found []*finding) {
	slices.SortFunc(found, func(a, b *finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	seen := map[string]int{}
	for _, f := range found {
		module := ""
		if f.in.Module != nil {
			module = f.in.Module.Path
		}
		callees := slices.Sorted(slices.Values(f.of.Callees))
		// A NUL byte cannot occur in a name, so that two lists of names cannot collide.
		key := strings.Join([]string{f.ID, module, f.Package, f.Function, strings.Join(callees, ",")}, "\x00")
		f.Identity = fmt.Sprintf("%s\x00%d", key, seen[key])
		seen[key]++
	}
}
