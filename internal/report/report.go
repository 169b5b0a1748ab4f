// Package report writes findings in the formats that people, CI systems and
// code hosts read: text, json, sarif, github and junit. The gates of forbear,
// check and lint, share it.
package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Severity orders findings. The zero value is Note.
type Severity uint8

// The severities, the gravest last.
const (
	Note Severity = iota
	Warning
	Error
)

// String returns note, warning or error. A value out of range reads as error: a
// mistake must not make a finding look harmless.
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[min(s, Error)] }

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// ParseSeverity is the inverse of [Severity.String]. The comparison is exact, since
// the names are keywords of flags and files.
func ParseSeverity(name string) (Severity, error) {
	for _, s := range []Severity{Note, Warning, Error} {
		if s.String() == name {
			return s, nil
		}
	}
	return Note, fmt.Errorf("unknown severity %q: want note, warning or error", name)
}

// Rule describes what findings of one id are about. IDs are never reused, because
// baselines and directives in users' code name them.
type Rule struct {
	ID       string   `json:"id"`   // stable: "FC101"
	Name     string   `json:"name"` // "retry-budget-missing"
	Standard string   `json:"rule,omitzero"`
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"`
	Why      string   `json:"why"`
	Fix      string   `json:"fix"`
	// Waivable reports whether a waiver can lift it.
	Waivable bool `json:"waivable"`
	// Bad and Good are source code that is reported, and the same, fixed.
	Bad  string `json:"bad,omitzero"`
	Good string `json:"good,omitzero"`
	// URL is where the rule is documented, or "".
	URL string `json:"url,omitzero"`
}

// Finding is one thing that was found. Line and Column count from 1, or are 0
// when the whole file is meant. The zero value of each optional field leaves it out
// of the JSON.
type Finding struct {
	ID       string   `json:"id"`
	Standard string   `json:"rule,omitzero"`
	Severity Severity `json:"severity"`
	// Confidence says how sure the finding is, for tools that may err: high,
	// medium, low, or "".
	Confidence string `json:"confidence,omitzero"`
	File       string `json:"file"`
	Line       int    `json:"line,omitzero"`
	Column     int    `json:"column,omitzero"`
	EndLine    int    `json:"end_line,omitzero"`
	EndColumn  int    `json:"end_column,omitzero"`
	Subject    string `json:"subject,omitzero"` // the dependency or the waiver
	// Package and Function say where in source code it is.
	Package  string  `json:"package,omitzero"`
	Function string  `json:"function,omitzero"`
	Message  string  `json:"message"`
	Hint     string  `json:"hint,omitzero"`
	URL      string  `json:"url,omitzero"` // the page that explains it
	Related  []Place `json:"related,omitempty"`
	Fixes    []Fix   `json:"fixes,omitempty"`
	// Covers are the fingerprints of the findings that this one stands for too: a
	// baseline that knows it knows them.
	Covers []string `json:"covers,omitempty"`
	// Suppressed says why the finding does not count: a directive, a waiver,
	// or the baseline.
	Suppressed string `json:"suppressed,omitzero"`
	// InSource reports whether it is a directive that suppresses it.
	InSource bool `json:"-"`
	// Baseline is new or unchanged when there is a baseline.
	Baseline string `json:"baseline,omitzero"`
	// Key tells findings of the same id and subject apart. It holds no line.
	Key string `json:"-"`
	// Degree is how bad it is, where that is a number: a baseline that knows a lesser
	// one does not know this. It is not part of the fingerprint.
	Degree float64 `json:"-"`
	// Identity, where it is set, is what the fingerprint is made of, instead of
	// ID, File, Subject and Key.
	Identity string `json:"-"`
}

// Place is a place in a file that has to do with a finding.
type Place struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line,omitzero"`
	EndColumn int    `json:"end_column,omitzero"`
	Message   string `json:"message,omitzero"`
}

// place is where f is.
func (f *Finding) place() Place {
	return Place{File: f.File, Line: f.Line, Column: f.Column, EndLine: f.EndLine, EndColumn: f.EndColumn}
}

// String is the place as compilers write it. Editors and terminals turn that form
// into a link. A place without a line is the file alone.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Fix is a change that mends a finding. Edits of one Fix belong together: a tool
// applies all or none of them, and they must not overlap.
type Fix struct {
	Message string `json:"message"`
	Edits   []Edit `json:"edits"`
}

// Edit replaces the bytes from Start to End of a file, which are those from the
// place's beginning to its end. Both forms are there because tools differ: editors
// want lines and columns, programs that rewrite files want bytes.
type Edit struct {
	Place
	Start   int    `json:"start"`
	End     int    `json:"end"`
	NewText string `json:"new_text"`
}

// Fingerprint stays the same when lines move. It is cut to 96 bits: enough that two
// findings of one repository never meet, and short enough to read. A change of its
// parts makes every user's baseline useless.
func (f *Finding) Fingerprint() string {
	id := f.Identity
	if id == "" {
		id = strings.Join([]string{f.ID, f.File, f.Subject, f.Key}, "\x00")
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12])
}

// Sort orders findings by place, then by id and message. The order is total but for
// equal findings, so that two runs over the same code give the same bytes.
func Sort(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
}

// Report is what a run found. It is plain data. The zero value is an empty run that
// found nothing. It is not safe for concurrent use.
type Report struct {
	Tool    string // "check"
	Version string
	// About is what the tool judged where Files does not say it: a module's
	// path.
	About    string
	Files    []string
	Findings []Finding
	// Problems are the files and parts of files that were not judged, in the
	// order in which people are shown them.
	Problems []Problem
	Rules    []Rule
	// ShowSuppressed has the suppressed findings written too.
	ShowSuppressed bool
	// Extra is added to the JSON under "details".
	Extra any
	// Root is the folder that files are relative to, as a URI; "" leaves it out.
	Root string
	// Place names a file in baselines, which may be read from another folder than they were
	// written from; nil leaves its name as it is.
	Place func(file string) string
	// Source returns the contents of a file. Where it is set, columns count
	// bytes, as those of Go tools do; else they count characters.
	Source func(file string) ([]byte, error)
}

// Counting returns the findings that are not suppressed. Exit codes, baselines and
// CI annotations go by these alone.
func (r *Report) Counting() []Finding {
	var fs []Finding
	for _, f := range r.Findings {
		if f.Suppressed == "" {
			fs = append(fs, f)
		}
	}
	return fs
}

// advice is the hint. One with a page that explains it says what to do, and is
// followed by the page.
func (f *Finding) advice() string {
	if f.Hint == "" || f.URL == "" {
		return f.Hint
	}
	return "fix: " + f.Hint + ": " + f.URL
}

// shown returns the findings that people are shown.
func (r *Report) shown() []Finding {
	if r.ShowSuppressed {
		return r.Findings
	}
	return r.Counting()
}
