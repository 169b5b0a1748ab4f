package check

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile/check"
)

// output is a format and where it goes: "" is standard output. One run may write
// several: text for the log of a pipeline, SARIF for the code host.
type output struct{ format, file string }

// write writes each output. in returns what writes a format. Without -o it is
// text.
func (q *gate) write(in func(format string) (func(io.Writer) error, error)) error {
	outputs := q.outputs
	if len(outputs) == 0 {
		outputs = []output{{"text", ""}}
	}
	for _, o := range outputs {
		write, err := in(o.format)
		if err != nil {
			return err
		}
		if o.file == "" {
			err = write(q.std.Out)
		} else {
			err = toFile(o.file, write)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func toFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// report returns what is found in the form that all formats share. Its root is
// the working directory: code hosts resolve the files of SARIF against it.
func (q *gate) report(result *check.Result) *report.Report {
	rep := &report.Report{
		Tool: "check", Version: version.Read().Version, Files: q.files, Findings: result.Findings, Rules: check.Rules(),
		Extra: map[string]any{"loads": result.Loads},
	}
	if dir, err := os.Getwd(); err == nil {
		rep.Root = "file://" + filepath.ToSlash(dir) + "/"
	}
	return rep
}

// writeReport writes what was found. Text and markdown are for readers, and have
// the worst cases and the owners beside the findings.
func (q *gate) writeReport(sources []check.Source, result *check.Result, rep *report.Report) error {
	return q.write(func(format string) (func(io.Writer) error, error) {
		switch format {
		case "text":
			return func(w io.Writer) error { return writeText(w, result, rep) }, nil
		case "markdown":
			return func(w io.Writer) error { return check.Markdown(w, sources, result) }, nil
		default:
			return func(w io.Writer) error { return rep.Write(w, format) }, nil
		}
	})
}

// writeText writes the findings, the worst cases and the sum. Findings that a
// waiver or the baseline lifts are listed below, with the reason: a lifted
// finding is accepted, not forgotten.
func writeText(w io.Writer, result *check.Result, rep *report.Report) error {
	if err := rep.Text(w); err != nil {
		return err
	}
	counting := rep.Counting()
	if len(counting) > 0 {
		fmt.Fprintln(w)
	}
	if err := check.Table(w, result); err != nil {
		return err
	}
	count := map[report.Severity]int{}
	for _, f := range counting {
		count[f.Severity]++
	}
	for _, f := range rep.Findings {
		if f.Suppressed != "" {
			fmt.Fprintf(w, "lifted: %s %s: %s\n", f.ID, f.Message, f.Suppressed)
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s\n", plural(count[report.Error], "error"), plural(count[report.Warning], "warning"), plural(count[report.Note], "note"))
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
