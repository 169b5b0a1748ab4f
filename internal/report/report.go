// Package report writes findings in the formats that people, CI systems and
// code hosts read: text, json, sarif, github, junit and markdown.
package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
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

// String returns note, warning or error.
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[min(s, Error)] }

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSeverity is the inverse of [Severity.String].
func ParseSeverity(name string) (Severity, error) {
	for _, s := range []Severity{Note, Warning, Error} {
		if s.String() == name {
			return s, nil
		}
	}
	return Note, fmt.Errorf("unknown severity %q: want note, warning or error", name)
}

// Rule describes what findings of one id are about.
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
}

// Finding is one thing that was found. Line and Column count from 1, or are 0
// when the whole file is meant.
type Finding struct {
	ID       string   `json:"id"`
	Standard string   `json:"rule,omitzero"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitzero"`
	Column   int      `json:"column,omitzero"`
	Subject  string   `json:"subject,omitzero"` // the dependency or the waiver
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitzero"`
	// Suppressed says why the finding does not count: a waiver, or the baseline.
	Suppressed string `json:"suppressed,omitzero"`
	// Key tells findings of the same id and subject apart. It holds no line.
	Key string `json:"-"`
}

// Fingerprint stays the same when lines move.
func (f *Finding) Fingerprint() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.ID, f.File, f.Subject, f.Key}, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// Sort orders findings by place, then by id and message.
func Sort(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
}

// Report is what a run found. It is plain data.
type Report struct {
	Tool     string // "check"
	Version  string
	Files    []string
	Findings []Finding
	Rules    []Rule
	// Extra is added to the JSON under "details".
	Extra any
	// Root is the folder that files are relative to, as a URI; "" leaves it out.
	Root string
}

// Counting returns the findings that are not suppressed.
func (r *Report) Counting() []Finding {
	var fs []Finding
	for _, f := range r.Findings {
		if f.Suppressed == "" {
			fs = append(fs, f)
		}
	}
	return fs
}

// Text writes a finding a line, followed by its hint.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Counting() {
		fmt.Fprintf(&b, "%s: %s: %s [%s%s]\n", place(&f), f.Severity, line(f.Message), f.ID, after(" ", f.Standard))
		if f.Hint != "" {
			fmt.Fprintf(&b, "    %s\n", line(f.Hint))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func place(f *Finding) string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
}

func after(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

// line keeps a message on one line, without control characters.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
