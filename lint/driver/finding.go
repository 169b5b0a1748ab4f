package driver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Place is a position in a file, with the file's name relative to the working
// directory. Line and Column count from 1; Column counts bytes.
type Place struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line,omitzero"`
	EndColumn int    `json:"end_column,omitzero"`
	Message   string `json:"message,omitzero"`

	abs string
}

// Edit replaces the bytes from Start to End of a file.
type Edit struct {
	File    string `json:"file"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	NewText string `json:"new_text"`

	abs      string
	from, to token.Position
}

// Fix is a suggested change.
type Fix struct {
	Message string `json:"message"`
	Edits   []Edit `json:"edits"`
}

// Finding is one finding as drivers show it.
type Finding struct {
	Rule        string  `json:"rule"`
	Confidence  string  `json:"confidence"`
	Message     string  `json:"message"`
	Package     string  `json:"package"`
	Function    string  `json:"function,omitzero"`
	Place       Place   `json:"location"`
	Related     []Place `json:"related,omitempty"`
	Fixes       []Fix   `json:"fixes,omitempty"`
	Fingerprint string  `json:"fingerprint"`
	Suppressed  string  `json:"suppressed,omitzero"` // the reason, when it is
	Baseline    string  `json:"baseline,omitzero"`   // "new" or "unchanged", when there is a baseline

	confidence rule.Confidence
	callees    []string
}

func (r *runner) finding(p *packages.Package, u *unit, f *rule.Finding) *Finding {
	out := &Finding{
		Rule: f.Rule, Confidence: f.Confidence.String(), confidence: f.Confidence, Message: f.Message,
		Package: p.PkgPath, Function: f.Function, Place: r.place(f.Pos, f.End, ""), callees: f.Callees,
	}
	if f.Suppressed != nil {
		out.Suppressed = f.Suppressed.Reason
	}
	for _, rel := range f.Related {
		if rel.Pos.IsValid() {
			out.Related = append(out.Related, r.place(rel.Pos, rel.End, rel.Message))
		}
	}
	for _, fix := range f.Fixes {
		x := Fix{Message: fix.Message}
		for _, e := range fix.TextEdits {
			from, to := position(r.l.fset, e.Pos), position(r.l.fset, e.End)
			x.Edits = append(x.Edits, Edit{
				File: r.l.rel(from.Filename), Start: from.Offset, End: to.Offset, NewText: string(e.NewText),
				abs: from.Filename, from: from, to: to,
			})
		}
		out.Fixes = append(out.Fixes, x)
	}
	return out
}

func (r *runner) place(pos, end token.Pos, msg string) Place {
	at := position(r.l.fset, pos)
	p := Place{File: r.l.rel(at.Filename), Line: at.Line, Column: at.Column, Message: msg, abs: at.Filename}
	if end > pos {
		e := position(r.l.fset, end)
		p.EndLine, p.EndColumn = e.Line, e.Column
	}
	return p
}

func sortFindings(fs []*Finding) {
	slices.SortStableFunc(fs, func(a, b *Finding) int {
		return cmp.Or(
			cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
}

// fingerprint gives each finding an identity that survives moved lines: the
// rule, the module, the package, the function, what is called there, and an
// ordinal among equals.
func fingerprint(module string, fs []*Finding) {
	seen := map[string]int{}
	for _, f := range fs {
		callees := slices.Clone(f.callees)
		slices.Sort(callees)
		key := strings.Join([]string{f.Rule, module, f.Package, f.Function, strings.Join(callees, ",")}, "\x00")
		n := seen[key]
		seen[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, n))
		f.Fingerprint = hex.EncodeToString(sum[:16])
	}
}
