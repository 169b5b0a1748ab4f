package driver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// Exit codes of Main.
const (
	ExitPass     = 0
	ExitFindings = 1
	ExitUnjudged = 2 // bad usage, code that does not compile, an unreadable file
)

// options are the parsed command line.
type options struct {
	outputs        []string
	failOn, min    rule.Confidence
	all            bool
	baseline       string
	writeBaseline  string
	since          string
	fix            bool
	explain        string
	rules          bool
	config         string
	dir            string
	tags           string
	parallel       int
	showSuppressed bool
	quiet          bool
	patterns       []string
}

const usage = `forbear lint: find retry bugs in Go source

Usage: forbear lint [FLAGS] [PACKAGES]

Packages default to ./... Only findings of high confidence fail; those of medium
confidence are shown as warnings, those of low confidence with --all.
Exit codes: 0 nothing fails, 1 findings fail, 2 could not judge.

Flags:
`

const examples = `
Examples:
  forbear lint ./...
  forbear lint -o text -o sarif:forbear.sarif ./...
  forbear lint --since origin/main ./...
  forbear lint --write-baseline .forbear-baseline.json ./...
  forbear lint --baseline .forbear-baseline.json ./...
  forbear lint --explain FB1001
`

// Main runs forbear lint with its arguments and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return ExitPass
	case err != nil:
		fmt.Fprintln(stderr, "forbear lint:", err)
		return ExitUnjudged
	case o.explain != "":
		return explain(o.explain, stdout, stderr)
	case o.rules:
		return listRules(o, stdout, stderr)
	}
	code, err := o.run(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "forbear lint: could not judge:", err)
		return ExitUnjudged
	}
	return code
}

// parseArgs reads the command line; help goes to stdout when it is asked for.
func parseArgs(args []string, stdout io.Writer) (*options, error) {
	o := &options{failOn: rule.High, min: rule.Medium}
	fs := flag.NewFlagSet("forbear lint", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Func("o", "`format[:file]`: text, json, sarif, github or junit; may be repeated (default text)", func(s string) error {
		format, _, _ := strings.Cut(s, ":")
		if renderers[format] == nil {
			return fmt.Errorf("format %q is none of text, json, sarif, github, junit", format)
		}
		o.outputs = append(o.outputs, s)
		return nil
	})
	fs.Func("fail-on", "the least `confidence` that fails: high, medium or low (default high)", func(s string) (err error) {
		o.failOn, err = rule.ParseConfidence(s)
		return err
	})
	fs.BoolVar(&o.all, "all", false, "show findings of low confidence too")
	fs.StringVar(&o.baseline, "baseline", "", "`file` of accepted findings (JSON or SARIF): only new ones fail")
	fs.StringVar(&o.writeBaseline, "write-baseline", "", "write all findings to `file` and pass")
	fs.StringVar(&o.since, "since", "", "judge only files changed since the git `revision`")
	fs.BoolVar(&o.fix, "fix", false, "apply the suggested fixes")
	fs.StringVar(&o.explain, "explain", "", "explain the `rule` and exit")
	fs.BoolVar(&o.rules, "rules", false, "list the rules and exit (-o json for JSON)")
	fs.StringVar(&o.config, "config", "", "YAML `file` with a user's settings and library table")
	fs.StringVar(&o.dir, "C", "", "run in `directory`")
	fs.StringVar(&o.tags, "tags", "", "build `tags`")
	fs.IntVar(&o.parallel, "p", runtime.GOMAXPROCS(0), "judge `n` packages at a time")
	fs.BoolVar(&o.showSuppressed, "show-suppressed", false, "show suppressed findings too")
	fs.BoolVar(&o.quiet, "q", false, "no progress")
	if err := fs.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			return nil, fmt.Errorf("%w (see forbear lint --help)", err)
		}
		fmt.Fprint(stdout, usage)
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		fmt.Fprint(stdout, examples)
		return nil, err
	}
	if o.parallel < 1 {
		return nil, fmt.Errorf("-p %d: want at least 1", o.parallel)
	}
	if o.patterns = fs.Args(); len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	if o.all {
		o.min = rule.Low
	}
	o.min = min(o.min, o.failOn)
	return o, nil
}

var renderers = map[string]func(io.Writer, *report) error{
	"text": writeText, "json": writeJSON, "sarif": writeSARIF, "github": writeGitHub, "junit": writeJUnit,
}

// run judges and renders. An error means that nothing was judged.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	if err := o.configure(); err != nil {
		return 0, err
	}
	accepted, err := readBaseline(o.baseline)
	if err != nil {
		return 0, err
	}
	changed, err := changedFiles(ctx, o.dir, o.since)
	if err != nil {
		return 0, err
	}
	l, err := load(ctx, o.dir, o.tags, o.patterns)
	if err != nil {
		return 0, err
	}
	r := &runner{l: l, analyzers: allAnalyzers()}
	if !o.quiet && terminal(stderr) {
		r.progress = func(done, total int, pkg string) {
			fmt.Fprintf(stderr, "\r\x1b[K%d/%d %s", done, total, pkg)
			if done == total {
				fmt.Fprint(stderr, "\r\x1b[K")
			}
		}
	}
	found, err := r.run(ctx, o.parallel)
	if err != nil {
		return 0, err
	}
	fingerprint(l.module, found)
	if o.writeBaseline != "" {
		return ExitPass, writeBaselineFile(o.writeBaseline, found)
	}
	if o.fix {
		n, err := applyFixes(found)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(stderr, "forbear lint: %d fixes applied\n", n)
	}
	rep := &report{module: l.module, failOn: o.failOn, packages: len(l.roots)}
	for _, f := range found {
		if o.shown(f, accepted, changed) {
			rep.findings = append(rep.findings, f)
		}
	}
	if err := o.render(rep, stdout); err != nil {
		return 0, err
	}
	if rep.failing() > 0 {
		return ExitFindings, nil
	}
	return ExitPass, nil
}

// shown decides whether a finding is shown, and compares it with the baseline.
func (o *options) shown(f *Finding, accepted, changed map[string]bool) bool {
	if accepted != nil {
		f.Baseline = "new"
		if accepted[f.Fingerprint] {
			f.Baseline = "unchanged"
		}
	}
	switch {
	case f.Suppressed != "" && !o.showSuppressed, f.Baseline == "unchanged" && !o.all:
		return false
	case o.fix && len(f.Fixes) > 0 && f.Suppressed == "":
		return false
	case changed != nil && !changed[f.Place.abs]:
		return false
	}
	return f.confidence >= o.min
}

// render writes every output; those with a file of their own go there.
func (o *options) render(rep *report, stdout io.Writer) error {
	outputs := o.outputs
	if len(outputs) == 0 {
		outputs = []string{"text"}
	}
	for _, out := range outputs {
		format, name, toFile := strings.Cut(out, ":")
		if !toFile {
			if err := renderers[format](stdout, rep); err != nil {
				return err
			}
			continue
		}
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := errors.Join(renderers[format](f, rep), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func explain(id string, stdout, stderr io.Writer) int {
	d, ok := lint.Explain(id)
	if !ok {
		fmt.Fprintf(stderr, "forbear lint: rule %q is unknown; see --rules\n", id)
		return ExitUnjudged
	}
	fmt.Fprintf(stdout, "%s %s: %s (%s)\n\n%s\n", d.ID, d.Name, d.Title, d.Standard, d.Text)
	if d.Bad != "" {
		fmt.Fprintf(stdout, "\nReported:\n\n%s\n\nInstead:\n\n%s\n", indent(d.Bad), indent(d.Good))
	}
	return ExitPass
}

func indent(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
