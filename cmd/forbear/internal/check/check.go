// Package check is the commands check and rules: policy files held against the
// standard, as a gate of a CI pipeline. The judging is policyfile/check's; here
// are the flags, the formats and the exit codes.
package check

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/check/find"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/explain"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint/settings"
	"github.com/forbear-go/forbear/policyfile/check"
	"github.com/forbear-go/forbear/policyfile/foreign"
)

// Command returns the command check.
func Command() *cli.Command {
	c := &cli.Command{
		Name:    "check",
		Summary: "check policy files against the standard, as a gate",
		Usage:   "[FLAGS] FILE|FOLDER|PATTERN|-...",
		About: `
Check judges policy files and the retry settings of other software (--from lists
it). Files given together are judged together: retry owners, and how the retries
of several layers multiply. A folder stands for the settings files below it,
except those in .forbearignore; "-" is standard input.

The last lines say what was judged and what was not. Exit code 0: nothing was
found at or above --fail-on. 1: something was. 2: a file was not read or not
recognized, or something could not be judged.

A valid waiver lifts a finding. In other software's files a comment on the line
above it does, too:

  # forbear:ignore FC301 until=2027-03-01 the backend drops repetitions

.forbear-check.yaml, here or in a folder above, changes severities:
severity: {FC208: error}, paths: [{files: ["old/**"], severity: {}}]
and comments: "off".`,
		Examples: `
forbear check policy.yaml
forbear check .
kubectl get virtualservices,destinationrules,configmaps -A -o yaml | forbear check -
forbear check -o text -o sarif:check.sarif services/*/policy.yaml
forbear check --max-amplification 4 --max-duration 10s services/*/policy.yaml
forbear check --allowed-signers signers policy.yaml
forbear check --checklist --metrics http://127.0.0.1:9090/metrics policy.yaml
forbear check --explain FC105
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		// Warnings do not fail by default: a team adopts the gate first,
		// and sharpens it with --fail-on later.
		q := &gate{std: std, failOn: report.Error}
		q.register(f)
		files, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		q.operands = files
		// NaN fails every comparison, so that this one is negated.
		if !(q.MaxAmplification >= 0) || q.MaxDuration < 0 {
			return std.Fail("check: --max-amplification and --max-duration must be above 0, or 0 for no limit")
		}
		if q.strict {
			q.failOn = min(q.failOn, report.Warning)
		}
		code, err := q.runUntil(ctx)
		if err != nil {
			return std.Fail("check: %v", err)
		}
		return code
	}
	return c
}

// gate is one run of check. Its Options are policyfile/check's own; the rest
// is what the command makes of the result. The zero value prints text and
// fails on errors.
type gate struct {
	check.Options
	std           *cli.Streams
	operands      []string
	ignored       [2]int          // files and folders that an ignore file left out
	vendored      []string        // folders with what others wrote
	outputs       []report.Output // in the order of the flags
	failOn        report.Severity // the least that is exit code 1
	baseline      string          // file of findings that do not count, or ""
	config        string          // file of settings, or "" to look for it
	writeBaseline string          // file to write such findings to, or ""
	explain       string          // finding to explain instead, or ""
	from          string          // format of the files, or "" to detect it
	strict        bool            // see the flag
	errorsOnly    bool            // see the flag
	checklist     bool            // evaluate the review questions instead
	metrics       string          // page of metrics to scrape for them, or ""
}

// register registers the flags. Formats and severities are checked while they are
// parsed, so that a slip in a pipeline fails before anything is judged.
func (q *gate) register(f *flag.FlagSet) {
	// Formats may be repeated. A file after the colon leaves standard
	// output to the others.
	f.Func("o", "output `format[:file]`: text, json, sarif, github, junit or markdown; repeatable", func(v string) error {
		format, file, _ := strings.Cut(v, ":")
		if !slices.Contains(append(report.Formats(), "markdown"), format) {
			return fmt.Errorf("unknown format %q: want %s or markdown", format, strings.Join(report.Formats(), ", "))
		}
		if file != "" && slices.ContainsFunc(q.outputs, func(o report.Output) bool { return o.File == file }) {
			return fmt.Errorf("two outputs go to %s: give each its own file", file)
		}
		q.outputs = append(q.outputs, report.Output{Format: format, File: file})
		return nil
	})
	f.Func("fail-on", "lowest `severity` that fails: error, warning or note (default error)", func(v string) (err error) {
		q.failOn, err = report.ParseSeverity(v)
		return err
	})
	f.Float64Var(&q.MaxAmplification, "max-amplification", 0, "fail if an outage may multiply a dependency's load by more")
	f.DurationVar(&q.MaxDuration, "max-duration", 0, "fail if a synchronous call may take longer")
	f.StringVar(&q.AllowedSigners, "allowed-signers", "", "`file` of those who may sign waivers (see ssh-keygen(1))")
	f.StringVar(&q.config, "config", "", "settings `file` (default: "+check.SettingsName+", here or above)")
	f.StringVar(&q.baseline, "baseline", "", "ignore findings listed in this `file`")
	// Writing a baseline passes on purpose: it is how a project with old
	// findings begins.
	f.StringVar(&q.writeBaseline, "write-baseline", "", "write all findings to this `file`, and pass")
	f.StringVar(&q.explain, "explain", "", "explain the finding with this `id`, and exit")
	formats := append([]string{"forbear"}, foreign.Formats()...)
	f.Func("from", "`format` of the files: "+strings.Join(formats, ", ")+" (default: by content)", func(v string) error {
		if !slices.Contains(formats, v) {
			return fmt.Errorf("unknown format %q%s", v, nearest.Hint(v, formats, ": want "+strings.Join(formats, ", ")))
		}
		q.from = v
		return nil
	})
	f.BoolVar(&q.strict, "strict", false, "fail on warnings, and on unrecognized files with retry settings")
	f.BoolVar(&q.errorsOnly, "errors-only", false, "show only errors; the exit code stays the same")
	f.BoolVar(&q.checklist, "checklist", false, "answer the review checklist, with evidence")
	f.StringVar(&q.metrics, "metrics", "", "--checklist: scrape metrics from this `URL`")
	// Waivers expire: with --now a pipeline can ask today what will fail
	// next month, and tests do not depend on the day.
	f.Func("now", "the current time, in RFC 3339", func(v string) (err error) {
		q.Now, err = time.Parse(time.RFC3339, v)
		return err
	})
}

// runUntil is run, left behind when ctx ends: whatever it is doing then, the process
// ends at once. Files are replaced in one step, so that none is half-written.
func (q *gate) runUntil(ctx context.Context) (code int, err error) {
	ended := make(chan struct{})
	var result int
	var failed error
	go func() {
		defer close(ended)
		result, failed = q.run(ctx)
	}()
	select {
	case <-ended:
		return result, failed
	case <-ctx.Done():
		return 0, errors.New("interrupted")
	}
}

// run judges the files. Exit code 2 takes precedence over 1: a gate that could
// not read a file must not look as if it had judged all of them. A baseline lists such
// files beside the findings, so that a repository with templates can adopt the gate too.
func (q *gate) run(ctx context.Context) (int, error) {
	// An explanation needs no files, and judges none.
	if q.explain != "" {
		return explain.Word(q.std, "check", q.explain, "text"), nil
	}
	if len(q.operands) == 0 {
		return 0, errors.New("no files given: name files or folders, as in: forbear check DIR")
	}
	if q.baseline != "" && q.writeBaseline != "" {
		return 0, errors.New("--baseline and --write-baseline: give one of the two")
	}
	if err := q.configure(); err != nil {
		return 0, err
	}
	read := q.read()
	q.Incomplete = read.Fatal()
	// The checklist is another report about the same files, with its own
	// exit code.
	if q.checklist {
		return q.review(ctx, read)
	}
	result := check.Run(read.Sources, q.Options)
	for _, err := range result.Unjudged {
		read.Problems = append(read.Problems, report.Problem{Kind: report.Unjudged, Message: err.Error(), Fatal: true})
	}
	// The baseline marks findings as suppressed, and those do not count
	// below.
	rep := q.report(read, result)
	if err := q.lift(rep); err != nil {
		return 0, err
	}
	result.Findings = check.Merged(rep.Findings)
	shown := *rep
	shown.Findings = result.Findings
	if err := q.writeReport(read, result, &shown); err != nil {
		return 0, err
	}
	if q.writeBaseline != "" {
		return q.adopt(read, rep)
	}
	// Some part was not judged, and that part might have failed.
	if read.Fatal() {
		return cli.ExitUsage, nil
	}
	if worst, any := result.Worst(); any && worst >= q.failOn {
		return cli.ExitFound, nil
	}
	return cli.ExitOK, nil
}

// adopt writes the baseline, and says what it takes as given. To do so is to pass, unless
// nothing was judged, or an operand was no file at all.
func (q *gate) adopt(read *check.Reading, rep *report.Report) (int, error) {
	if read.Files == 0 {
		return 0, fmt.Errorf("%s was not written: nothing was judged", q.writeBaseline)
	}
	if err := report.ToFile(q.writeBaseline, rep.WriteBaseline); err != nil {
		return 0, err
	}
	left := 0
	for _, p := range read.Problems {
		// What is missing, and standard input, no baseline knows; the report says so.
		switch known := p.File != find.StdinName && slices.Contains(read.Names, p.File); {
		case p.Fatal && !known:
			return cli.ExitUsage, nil
		case p.Fatal:
			left++
		}
	}
	known := report.Plural(len(rep.Counting()), "finding")
	if left > 0 {
		known += ", " + report.Plural(left, "place") + " that cannot be judged"
	}
	fmt.Fprintf(q.std.Err, "check: wrote %s (%s). Review it, commit it, and run forbear check --baseline %[1]s\n", q.writeBaseline, known)
	return cli.ExitOK, nil
}

// configure reads the settings, if there are any.
func (q *gate) configure() error {
	if q.config == "" {
		q.config = settings.Discover(".", check.SettingsName)
	}
	if q.config == "" {
		return nil
	}
	data, err := os.ReadFile(q.config)
	if err != nil {
		return err
	}
	q.Settings, err = check.ParseSettings(q.config, data)
	return err
}

// wanted reports whether a file of a folder is looked into. Forbear's own settings
// are none.
func wanted(path string) bool {
	base := filepath.Base(path)
	return foreign.Candidate(path) && base != check.SettingsName && base != settings.FileName
}

// read reads the files that the operands stand for.
func (q *gate) read() *check.Reading {
	files := find.Of(q.operands, wanted)
	q.ignored, q.vendored = [2]int{files.Ignored, files.IgnoredFolders}, files.Vendored
	var inputs []check.Input
	var problems []report.Problem
	unread := func(name string, err error) {
		problems = append(problems, report.Problem{Kind: report.Unread, File: name, Message: err.Error(), Fatal: true})
	}
	for _, m := range files.Missing {
		unread(m.Name, m.Err)
	}
	for _, m := range files.Passed {
		problems = append(problems, report.Problem{Kind: report.Unread, File: m.Name, Message: m.Err.Error()})
	}
	for _, file := range files.All {
		data, err := find.Read(file.Name, q.std.In, foreign.MaxSize)
		if err != nil {
			unread(file.Name, err)
			continue
		}
		name := file.Name
		if name == find.Stdin {
			name = find.StdinName
		}
		inputs = append(inputs, check.Input{Name: name, Data: data, Format: q.from, Met: file.Met, Beside: file.Name != find.Stdin})
	}
	read := check.ReadAll(inputs)
	read.Problems = append(problems, read.Problems...)
	for i := range read.Problems {
		p := &read.Problems[i]
		p.Fatal = p.Fatal || q.strict && p.Kind == report.Unrecognized && p.Line > 0
	}
	// A run that recognized nothing has looked at nothing.
	if read.Files == 0 && !slices.ContainsFunc(read.Problems, func(p report.Problem) bool { return p.Fatal }) {
		message := "no file to judge"
		if n := len(inputs); n > 0 {
			message = "nothing to judge in " + report.Plural(n, "file") + ": no policy file, and no settings that check reads (see --from)"
		}
		read.Problems = append([]report.Problem{{Kind: report.Unrecognized, Message: message, Fatal: true}}, read.Problems...)
	}
	return read
}

// lift marks the findings that the baseline knows. A project that adopts the
// gate with old findings then fails only on new ones, and can work the old
// ones off in its own time.
func (q *gate) lift(rep *report.Report) error {
	if q.baseline == "" {
		return nil
	}
	data, err := os.ReadFile(q.baseline)
	if err != nil {
		return fmt.Errorf("--baseline: %w (--write-baseline writes one)", err)
	}
	b, err := report.ReadBaseline(data)
	if err != nil {
		return fmt.Errorf("%s: %w", q.baseline, err)
	}
	b.Apply(rep)
	return nil
}
