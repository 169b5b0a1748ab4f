package driver

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// details are what JSON says of a run beside its findings. The names of its fields are
// part of the JSON format and stay as they are.
type details struct {
	Module   string `json:"module"`
	Packages int    `json:"packages"`
	FailOn   string `json:"fail_on"`
	Failing  int    `json:"failing"`
	// NotJudged are the packages that were not judged, most of them because they do not
	// compile, or need one that does not.
	NotJudged []string `json:"not_judged,omitempty"`
	// Since is the revision from which the files differ that findings are shown in.
	Since string `json:"since,omitempty"`
}

// report holds what is to be shown: findings sure enough, in the files that differ. A
// nil differs stands for all files. Others are left out after the analysis and not
// before: facts of unchanged packages still decide what is found in changed ones.
func (o *options) report(v *verdict, accepted *report.Baseline, differs func(file string) bool) *report.Report {
	rep := &report.Report{
		Tool: "lint", Version: lint.Version, About: v.module, ShowSuppressed: o.showSuppressed, Problems: v.problems,
		Root:   report.FileURI(v.dir) + "/",
		Source: func(file string) ([]byte, error) { return os.ReadFile(v.abs(file)) },
	}
	for _, d := range lint.Rules() {
		rep.Rules = append(rep.Rules, report.Rule{
			ID: d.ID, Name: d.Name, Standard: d.Standard, Severity: report.Error, Summary: d.Title,
			Why: d.Text, Fix: d.Remedy, Bad: d.Bad, Good: d.Good, URL: lint.HelpURL(d.ID),
			Waivable: strings.HasPrefix(d.ID, "FB1"), // those about directives guard the waiving itself
		})
	}
	var shown []*finding
	for _, f := range v.findings {
		if f.of.Confidence >= o.least && (differs == nil || differs(v.abs(f.File))) {
			f.Severity = o.severity(f.of.Confidence)
			shown = append(shown, f)
			rep.Findings = append(rep.Findings, f.Finding)
		}
	}
	// What is known to the baseline does not count, and what does not count is no one's
	// cause: a new finding must not go under in an old one.
	if accepted != nil {
		accepted.Apply(rep)
	}
	// Each finding has its own fix, and its own place in a baseline.
	if !o.fix && o.writeBaseline == "" {
		rep.Findings = fold(rep.Findings, shown)
	}
	rep.Extra = &details{Module: v.module, Packages: len(v.roots), FailOn: o.failOn.String(), Failing: failing(rep), NotJudged: v.notJudged, Since: o.since}
	return rep
}

// severity makes an error of what fails. Tools that show SARIF sort by it, so it follows
// the exit code and not the rule.
func (o *options) severity(c rule.Confidence) report.Severity {
	switch {
	case c >= o.failOn:
		return report.Error
	case c == rule.Low:
		return report.Note
	}
	return report.Warning
}

// failing counts the findings that fail the run. Suppressed findings and those of the
// baseline do not count.
func failing(rep *report.Report) (n int) {
	for _, f := range rep.Counting() {
		if f.Severity == report.Error {
			n++
		}
	}
	return n
}

// render writes every output.
func (o *options) render(rep *report.Report, stdout io.Writer) error {
	return report.WriteAll(o.outputs, stdout, func(w io.Writer, out report.Output) error {
		switch out.Format {
		case "text":
			return writeText(w, rep, out.File != "")
		case "github":
			return o.fromCheckout(rep).GitHub(w)
		}
		return rep.Write(w, out.Format)
	})
}

// writeText adds the summary to the findings. A file is read without standard error, so
// that it has the problems too.
func writeText(w io.Writer, rep *report.Report, problems bool) error {
	text := *rep
	if !problems {
		text.Problems = nil
	}
	if err := text.Text(w); err != nil {
		return err
	}
	return summary(w, rep, rep.Extra.(*details))
}

// fromCheckout is a report whose files are named from the root of the checkout, as
// annotations want them wherever the linter runs: from GITHUB_WORKSPACE, or else from
// the working directory.
func (o *options) fromCheckout(rep *report.Report) *report.Report {
	root, err := filepath.Abs(os.Getenv("GITHUB_WORKSPACE"))
	if err != nil {
		return rep
	}
	rename := func(file *string) {
		full := (&loaded{dir: o.dir}).abs(*file)
		if r, err := filepath.Rel(real(root), real(full)); *file != "" && err == nil && filepath.IsLocal(r) {
			*file = filepath.ToSlash(r)
		}
	}
	there := *rep
	there.Findings, there.Problems = slices.Clone(rep.Findings), slices.Clone(rep.Problems)
	for i := range there.Findings {
		rename(&there.Findings[i].File)
	}
	for i := range there.Problems {
		rename(&there.Problems[i].File)
	}
	return &there
}
