package report

import (
	"fmt"
	"slices"
)

// Problem is a file, or a part of one, that was not judged. A report without
// findings would otherwise look the same whether its files are good or were never
// read.
type Problem struct {
	Kind ProblemKind `json:"kind"`
	// File is as in a [Finding]. It is "" for a problem that no file has.
	File string `json:"file"`
	// Line and Column count from 1, or are 0 when the whole file is meant.
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Message string `json:"message"`
	// Fatal reports whether the problem keeps the run from passing. A file that was
	// named and cannot be judged does; one that was met in a folder, and is none of
	// the tool's, does not.
	Fatal bool `json:"fatal"`
	// Known says that the baseline has it.
	Known bool `json:"known,omitzero"`
}

// ProblemKind says how far the tool came. It is a keyword of JSON and of SARIF, and
// is never renamed.
type ProblemKind string

// The kinds of problems.
const (
	Unread       ProblemKind = "unread"       // it could not be read or parsed
	Unrecognized ProblemKind = "unrecognized" // no reader knows what it is
	Faulty       ProblemKind = "faulty"       // it breaks the rules of its kind; the rest of it may have been judged
	Unjudged     ProblemKind = "unjudged"     // it was read, and this part of it has no verdict
)

// problemKinds describes the kinds to readers. The order is that of SARIF's
// descriptors.
var problemKinds = []struct {
	kind           ProblemKind
	title, summary string
}{
	{Unread, "not read", "The file could not be read or parsed, so it was not judged."},
	{Unrecognized, "not recognized", "The file is of no kind that forbear can judge."},
	{Faulty, "faulty", "The file has faults, so it was not judged as a whole."},
	{Unjudged, "not judged", "A part of the file was read and cannot be judged."},
}

// Title returns the kind in words: "not read". A kind out of the list keeps its
// own name.
func (k ProblemKind) Title() string {
	for _, known := range problemKinds {
		if known.kind == k {
			return known.title
		}
	}
	return string(k)
}

// Severity is that of the annotation: error for a fatal problem, or else note.
func (p *Problem) Severity() Severity {
	if p.Fatal {
		return Error
	}
	return Note
}

// Place is where p is.
func (p *Problem) Place() Place { return Place{File: p.File, Line: p.Line, Column: p.Column} }

// String is the line of the text format. A problem that is not fatal says so: both
// stand in the same list, and only one of them explains the exit code.
func (p Problem) String() string {
	text := p.Kind.Title() + ": " + Line(p.Message)
	if p.File != "" {
		text = Line(p.Place().String()) + ": " + text
	}
	switch {
	case p.Known:
		text += " (known to the baseline)"
	case !p.Fatal:
		text += " (passed over)"
	}
	return text
}

// Incomplete reports whether a fatal problem keeps the run from passing, whatever
// was found.
func (r *Report) Incomplete() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Fatal })
}

// junit makes p an error, which fails the job as a failure does, or a skipped case.
// The place is part of the name, since CI systems take two cases of one name for the
// same one.
func (p *Problem) junit(class string) junitCase {
	c := junitCase{Class: class, Name: p.Kind.Title()}
	if p.Line > 0 {
		c.Name += fmt.Sprintf(" at %d:%d", p.Line, max(p.Column, 1))
	}
	if p.Fatal {
		c.Error = &junitFailure{string(p.Kind), Line(p.Message), p.String()}
	} else {
		c.Skipped = &junitSkipped{p.Kind.Title() + ": " + Line(p.Message)}
	}
	return c
}

// invocation describes the run itself. SARIF has results for findings, and
// notifications for errors that kept the tool from looking.
func (s *sarif) invocation(r *Report) m {
	run := m{"executionSuccessful": !r.Incomplete()}
	var list []m
	for _, p := range r.Problems {
		n := m{"level": p.Severity().String(), "message": m{"text": Line(p.Message)}, "descriptor": m{"id": string(p.Kind)}}
		for i, known := range problemKinds {
			if known.kind == p.Kind {
				n["descriptor"] = m{"id": string(p.Kind), "index": i}
			}
		}
		if p.File != "" {
			n["locations"] = []m{{"physicalLocation": s.physical(p.Place())}}
		}
		list = append(list, n)
	}
	if list != nil {
		run["toolExecutionNotifications"] = list
	}
	return run
}

// problemDescriptors describes the kinds as SARIF wants them.
func problemDescriptors() []m {
	list := []m{}
	for _, k := range problemKinds {
		list = append(list, m{"id": string(k.kind), "name": pascal(string(k.kind)), "shortDescription": m{"text": k.summary}})
	}
	return list
}
