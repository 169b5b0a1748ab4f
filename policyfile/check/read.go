package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// Input is a file for judging.
type Input struct {
	Name string
	Data []byte
	// Format is "forbear" or one of [foreign.Formats]; "" finds out.
	Format string
	// Met says that the file was met in a folder, and not named: it need not be
	// recognized.
	Met bool
	// Beside says that Name is the path of the file, and that files below its folder
	// may be read when it includes them.
	Beside bool
}

// Reading is what a set of files holds.
type Reading struct {
	Sources []Source
	// Problems are the files that were not read, or not as a whole, and those that
	// were not recognized.
	Problems []report.Problem
	// Files counts those that were recognized.
	Files int
	// Names are those of all files, in their order.
	Names []string
}

// ReadAll reads files for judging: policy files, and the configuration of other
// software. What a file is, is decided by its parsed structure. Files of one product
// are read together, since a route may stand in one and its cluster in another.
func ReadAll(inputs []Input) *Reading {
	r := &Reading{}
	t := &intake{Reading: r, comments: map[string][]*directive{}}
	for _, in := range inputs {
		t.open(in)
	}
	t.include(inputs)
	for _, l := range t.left {
		r.unrecognized(l.Input, l.opened)
	}
	results := foreign.Read(t.parts)
	t.mistaken(inputs, results)
	for _, f := range results {
		r.Sources = append(r.Sources, Source{File: f.File, Refused: f.Refused})
	}
	for i := range r.Sources {
		r.Sources[i].directives = t.comments[r.Sources[i].File.Name]
	}
	return r
}

// intake is a reading while its files are opened.
type intake struct {
	*Reading
	parts    []foreign.Part
	comments map[string][]*directive
	left     []unread
}

// unread is a file that nothing reads by itself.
type unread struct {
	Input
	opened *foreign.Opened
}

// open opens a file, and keeps what it holds.
func (t *intake) open(in Input) {
	if _, again := t.comments[in.Name]; !again {
		t.Names = append(t.Names, in.Name)
	}
	t.comments[in.Name] = directives(in.Name, in.Data)
	open := foreign.Open
	if in.Met {
		open = foreign.OpenMet
	}
	opened := open(in.Name, in.Data, in.Format)
	for _, p := range opened.Policies {
		t.policy(in.Name, p)
	}
	for _, f := range opened.Faults {
		t.problem(report.Unread, f.Position, f.Message, true)
	}
	t.parts = append(t.parts, opened.Parts...)
	switch {
	case len(opened.Parts)+len(opened.Policies) > 0:
		t.Files++
	case in.Met && foreign.Program(in.Name): // most are no settings
	case len(opened.Faults) == 0:
		t.left = append(t.left, unread{in, opened})
	}
}

// mistaken records the files that are not what they were said to be: what was looked
// for in them is not there, and what is there was not looked at.
func (t *intake) mistaken(inputs []Input, results []foreign.Result) {
	held := map[string]bool{}
	for _, p := range t.parts {
		held[p.Name] = held[p.Name] || !p.Assumed
	}
	for i := range results {
		held[results[i].File.Name] = held[results[i].File.Name] || !results[i].Empty()
	}
	for _, in := range inputs {
		if here, read := held[in.Name]; in.Format != "" && read && !here {
			t.Files--
			t.problem(report.Unrecognized, policyfile.Position{File: in.Name}, "the file is not in the format "+in.Format, !in.Met)
		}
	}
}

// policy reads a policy file. What is wrong with it keeps nothing else in it from
// being judged.
func (r *Reading) policy(name string, data []byte) {
	f, refused, err := policyfile.Inspect(name, data)
	r.Sources = append(r.Sources, Source{File: f, Refused: refused})
	if faults, ok := errors.AsType[*policyfile.Error](err); ok {
		for _, f := range faults.Faults {
			r.problem(report.Faulty, f.Position, f.Message, true)
		}
		if faults.More > 0 {
			r.problem(report.Faulty, policyfile.Position{File: name}, fmt.Sprintf("%d more faults: fix those above first", faults.More), true)
		}
	}
}

// unrecognized records a file that nothing reads. One that was named has to be
// judged; one that was met is named when it speaks of retries.
func (r *Reading) unrecognized(in Input, opened *foreign.Opened) {
	at, message := policyfile.Position{File: in.Name}, "neither a policy file nor a configuration that check reads: see --from in forbear check --help"
	if opened.Retry.Line > 0 {
		at, message = opened.Retry, "a retry setting that check does not read: "+opened.Setting
	}
	r.problem(report.Unrecognized, at, cmp.Or(opened.Why, message), !in.Met)
}

func (r *Reading) problem(kind report.ProblemKind, at policyfile.Position, message string, fatal bool) {
	r.Problems = append(r.Problems, report.Problem{
		Kind: kind, File: at.File, Line: at.Line, Column: at.Column, Message: message, Fatal: fatal,
	})
}

// Fatal reports whether a problem keeps the run from passing, or nothing was
// recognized at all.
func (r *Reading) Fatal() bool {
	return r.Files == 0 || slices.ContainsFunc(r.Problems, func(p report.Problem) bool { return p.Fatal })
}

// Units counts what was judged: dependencies, consumers, webhooks, and the routes
// and backends of other software.
func (r *Reading) Units() (n int) {
	for _, s := range r.Sources {
		n += len(s.File.All()) + s.File.Quiet
	}
	return n
}

// Err joins the problems that are fatal, for those who need no report.
func (r *Reading) Err() error {
	var errs []error
	for _, p := range r.Problems {
		if p.Fatal {
			errs = append(errs, errors.New(p.String()))
		}
	}
	return errors.Join(errs...)
}

// Read is [ReadAll] for one file, of which it returns the first part: what a policy
// file is as a whole.
func Read(name string, data []byte) (Source, error) {
	r := ReadAll([]Input{{Name: name, Data: data}})
	if len(r.Sources) == 0 {
		return Source{}, r.Err()
	}
	return r.Sources[0], r.Err()
}
