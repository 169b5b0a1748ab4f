package check

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
		Extra: map[string]any{"loads": result.Loads, "units": read.Units(), "files": read.Files, "ignored": q.ignored[0], "ignored_folders": q.ignored[1], "off": result.Off},
	}
	// Without a working directory the paths stay relative, which most
	// readers accept.
	// A file URL ends in a slash: paths are resolved below it.
	if dir, err := os.Getwd(); err == nil {
		rep.Root = "file://" + filepath.ToSlash(dir) + "/"
	}
	return rep
}

// writeReport writes what was found. Text and markdown are for readers, and have
// the worst cases and the owners beside the findings.
func (q *gate) writeReport(read *check.Reading, result *check.Result, rep *report.Report) error {
	// Where people read, a folder's files of other kinds are a number in the last
	// line. Those that speak of retries are named.
	brief := *rep
	brief.Problems = slices.DeleteFunc(slices.Clone(rep.Problems), func(p report.Problem) bool { return !p.Fatal && p.Line == 0 && p.Kind == report.Unrecognized })
	return report.WriteAll(q.outputs, q.std.Out, func(w io.Writer, o report.Output) error {
		switch o.Format {
		case "text":
			return q.writeText(w, read, result, &brief)
		case "github":
			return brief.GitHub(w)
		case "markdown":
			return check.Markdown(w, read, result)
		}
		return rep.Write(w, o.Format)
	})
}

// writeText writes the findings, the worst cases and the sum. Findings that
// a waiver or the baseline lifts are listed below, with the reason: a lifted
// finding is accepted, not forgotten.
func (q *gate) writeText(w io.Writer, read *check.Reading, result *check.Result, rep *report.Report) error {
	if err := rep.Text(w); err != nil {
		return err
	}
	// Counting findings are those that nothing lifts.
	counting := rep.Counting()
	if len(counting) > 0 {
		fmt.Fprintln(w)
	}
	// The table comes after the findings: on a terminal the last lines are
	// the ones that are seen.
	if err := check.Table(w, result); err != nil {
		return err
	}
	count := map[report.Severity]int{}
	for _, f := range counting {
		count[f.Severity]++
	}
	for _, f := range rep.Findings {
		if f.Suppressed != "" {
			fmt.Fprintf(w, "lifted: %s %s: %s\n", f.ID, report.Line(f.Message), report.Line(f.Suppressed))
		}
	}
	fmt.Fprintf(w, "%s, %s, %s\n", report.Plural(count[report.Error], "error"), report.Plural(count[report.Warning], "warning"), report.Plural(count[report.Note], "note"))
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
		{len(lost), "file", "not read, or not as a whole"},
		{q.ignored[0], "file", "ignored"},
		{q.ignored[1], "folder", "ignored"},
		{result.Off, "finding", "off by the settings"},
	} {
		if more.n > 0 {
			line = append(line, report.Plural(more.n, more.noun)+" "+more.what)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(line, "; "))
	return err
}
