package check

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/cmd/forbear/internal/check/find"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/check"
)

// report returns the findings in the form that all formats share. Its root
// is the working directory: code hosts resolve the files of SARIF against
// it.
func (q *gate) report(read *check.Reading, result *check.Result) *report.Report {
	rep := &report.Report{
		Tool: "check", Version: version.Read().Version, Files: read.Names, Problems: read.Problems, Findings: result.Findings, Rules: check.Rules(),
		// The worst cases are part of the JSON report: a pipeline may set
		// limits of its own.
		Extra: map[string]any{"loads": result.Loads, "units": read.Units(), "files": read.Files, "ignored": q.ignored[0], "ignored_folders": q.ignored[1], "vendored_folders": q.vendored, "off": result.Off},
	}
	// Without a working directory the paths stay relative, which most
	// readers accept.
	// A file URL ends in a slash: paths are resolved below it.
	if dir, err := os.Getwd(); err == nil {
		rep.Root = "file://" + filepath.ToSlash(dir) + "/"
		rep.Place = placeFrom(dir, cmp.Or(q.writeBaseline, q.baseline))
	}
	return rep
}

// placeFrom returns how a baseline names files: by their path from its own folder, so that it
// means the same wherever check is run from, and whichever way a file was named.
func placeFrom(dir, baseline string) func(file string) string {
	absolute := func(name string) string {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name
	}
	folder := filepath.Dir(absolute(baseline))
	return func(file string) string {
		if file == find.StdinName {
			return file
		}
		name, err := filepath.Rel(folder, absolute(file))
		if err != nil {
			return file
		}
		return filepath.ToSlash(name)
	}
}

// writeReport writes what was found. Text and markdown are for readers, and have
// the worst cases and the owners beside the findings.
func (q *gate) writeReport(read *check.Reading, result *check.Result, rep *report.Report) error {
	if q.errorsOnly {
		rep = errorsOf(rep)
	}
	brief := *rep
	brief.Findings, brief.Problems = fewNotes(rep.Findings), few(rep.Problems)
	return report.WriteAll(q.outputs, q.std.Out, func(w io.Writer, o report.Output) error {
		switch o.Format {
		case "text":
			return q.writeText(w, read, result, &brief)
		case "github":
			return brief.GitHub(w)
		case "markdown":
			shown := *result
			if q.errorsOnly {
				shown.Loads = nil
			}
			return check.Markdown(w, read, &brief, &shown)
		}
		return rep.Write(w, o.Format)
	})
}

// errorsOf is a report without warnings and notes, and without what is passed over.
func errorsOf(rep *report.Report) *report.Report {
	some := *rep
	some.Findings = slices.DeleteFunc(slices.Clone(rep.Findings), func(f report.Finding) bool { return f.Severity < report.Error })
	some.Problems = slices.DeleteFunc(slices.Clone(rep.Problems), func(p report.Problem) bool { return !p.Fatal })
	return &some
}

// fewOf is how many places people are shown that one thing is said of, unless it is an
// error: the others are a number.
const fewOf = 3

// fewNotes leaves out warnings and notes that say of many places what those before them
// say. The last that is shown says how many there are.
func fewNotes(found []report.Finding) (shown []report.Finding) {
	about := func(f *report.Finding) string { return f.ID + without(f.Message, f.Subject) }
	spare := func(f *report.Finding) bool { return f.Severity < report.Error && f.Suppressed == "" }
	count, named := map[string]int{}, map[string]int{}
	for _, f := range found {
		if spare(&f) {
			count[about(&f)]++
		}
	}
	for _, f := range found {
		if key := about(&f); spare(&f) {
			if named[key]++; named[key] > fewOf {
				continue
			}
			f.Message += more(named[key], fewOf, count[key])
		}
		shown = append(shown, f)
	}
	return shown
}

// without takes a subject out of a message, where it stands as a word.
func without(message, subject string) string {
	if subject == "" {
		return message
	}
	word := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(subject) + `(\W|$)`)
	return word.ReplaceAllString(message, "$1$2")
}

// more is what the last of few says of the others.
func more(n, most, all int) string {
	if n < most || all <= most {
		return ""
	}
	return fmt.Sprintf(" (and %s: see -o json)", report.Plural(all-most, "more place"))
}

// few are the problems that people are shown, those that keep the run from passing first.
// A folder's files of other kinds are a number in the last line, and of many files with one
// problem a few are named.
func few(problems []report.Problem) (shown []report.Problem) {
	about := func(p *report.Problem) string { return fmt.Sprint(p.Kind, p.Message, p.Fatal) }
	count, named := map[string]int{}, map[string]int{}
	quiet := func(p *report.Problem) bool {
		return p.Known || !p.Fatal && p.Line == 0 && p.Kind == report.Unrecognized
	}
	for _, p := range problems {
		count[about(&p)]++
	}
	for _, fatal := range []bool{true, false} {
		most := fewOf
		if !fatal {
			most = 1
		}
		for _, p := range problems {
			key := about(&p)
			if p.Fatal != fatal || quiet(&p) || named[key] == most {
				continue
			}
			named[key]++
			p.Message += more(named[key], most, count[key])
			shown = append(shown, p)
		}
	}
	return shown
}

// writeText writes the findings, the worst cases and the sum. Findings that
// a waiver or a comment lifts are listed below, with the reason: a lifted
// finding is accepted, not forgotten.
func (q *gate) writeText(w io.Writer, read *check.Reading, result *check.Result, rep *report.Report) error {
	short := *rep
	short.Findings = slices.Clone(rep.Findings)
	for i := range short.Findings {
		if f := &short.Findings[i]; len(f.Covers) > 0 {
			f.Related = nil // one line for all
			f.Hint += " forbear check -o markdown lists each."
		}
	}
	if err := short.Text(w); err != nil {
		return err
	}
	if len(short.Counting())+len(short.Problems) > 0 {
		fmt.Fprintln(w)
	}
	// The table comes after the findings: on a terminal the last lines are
	// the ones that are seen.
	if !q.errorsOnly {
		if err := check.Table(w, result); err != nil {
			return err
		}
	}
	return q.sum(w, read, result)
}

// sum says what was lifted, how much was found, and how much of what was judged.
func (q *gate) sum(w io.Writer, read *check.Reading, result *check.Result) error {
	count, known := map[report.Severity]int{}, 0
	for _, f := range result.Findings {
		switch {
		case f.Suppressed == "":
			count[f.Severity]++
		case f.Suppressed == report.KnownToBaseline:
			known++
		default:
			fmt.Fprintf(w, "lifted: %s %s: %s\n", f.ID, report.Line(f.Message), report.Line(f.Suppressed))
		}
	}
	// What could not be judged keeps the run from passing as an error does.
	for _, p := range read.Problems {
		if p.Fatal {
			count[report.Error]++
		} else if p.Known {
			known++
		}
	}
	line := fmt.Sprintf("%s, %s, %s", report.Plural(count[report.Error], "error"), report.Plural(count[report.Warning], "warning"), report.Plural(count[report.Note], "note"))
	if known > 0 {
		line += fmt.Sprintf("; %d in the baseline", known)
	}
	fmt.Fprintln(w, line)
	return q.judged(w, read, result)
}

// judged ends every run: how much was judged, and what was not.
func (q *gate) judged(w io.Writer, read *check.Reading, result *check.Result) error {
	lost, unknown := map[string]bool{}, map[string]bool{}
	for _, p := range read.Problems {
		switch {
		case p.File == "":
		case p.Kind == report.Unrecognized:
			unknown[p.File] = true
		default:
			lost[p.File] = true
		}
	}
	line := []string{fmt.Sprintf("judged %s in %s", report.Plural(read.Units(), "unit"), report.Plural(read.Files, "file")), report.Plural(len(unknown), "file") + " not recognized"}
	for _, more := range []struct {
		n          int
		noun, what string
	}{
		{len(lost), "file", "not read, or only in part"},
		{q.ignored[0], "file", "ignored"},
		{q.ignored[1], "folder", "ignored"},
		{len(q.vendored), "vendored folder", "left out"},
		{result.Off, "finding", "turned off by the settings"},
	} {
		if more.n > 0 {
			line = append(line, report.Plural(more.n, more.noun)+" "+more.what)
		}
	}
	if _, err := fmt.Fprintln(w, strings.Join(line, "; ")); err != nil {
		return err
	}
	return q.further(w, result)
}

// further names the command that explains the gravest finding.
func (q *gate) further(w io.Writer, result *check.Result) error {
	var gravest *report.Finding
	for i := range result.Findings {
		f := &result.Findings[i]
		if f.Suppressed == "" && (!q.errorsOnly || f.Severity == report.Error) && (gravest == nil || f.Severity > gravest.Severity) {
			gravest = f
		}
	}
	if gravest == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "forbear explain %s says more\n", gravest.ID)
	return err
}
