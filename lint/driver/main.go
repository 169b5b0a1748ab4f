package driver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
	"github.com/forbear-go/forbear/lint/settings"
)

// Exit codes of Main.
// They are part of the interface: CI scripts tell findings from a run that
// judged nothing.
const (
	ExitPass     = 0
	ExitFindings = 1
	ExitUnjudged = 2 // bad usage, code that does not compile, an unreadable file
)

// options are the parsed command line.
// The zero value is not usable: parseArgs sets the defaults.
type options struct {
	outputs        []output
	failOn         rule.Confidence
	failOnSaid     bool
	least          rule.Confidence // that is shown
	all            bool
	baseline       string
	writeBaseline  string
	since          string
	fix            bool
	explain        string
	whyAt          string // FILE:LINE
	rules          bool
	config         string
	policy         string
	signers        string
	readPolicy     PolicyReader
	printSettings  bool
	dir            string
	tags           string
	parallel       int
	showSuppressed bool
	noCache        bool
	watch          bool
	poll           time.Duration // between two looks at the files
	quiet          bool
	patterns       []string
}

// Main runs forbear lint with its arguments and returns the exit code. A nil
// reader leaves out the flags about policy files. One process runs one Main at a
// time.
// The settings are process-wide, and that is why two runs must not overlap.
// Reports go to stdout; faults, notes and progress go to stderr, so that a
// report can be piped.
func Main(ctx context.Context, reader PolicyReader, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(reader, args, stdout)
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
	run := o.run
	if o.watch {
		run = o.watchFiles
	}
	code, err := run(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "forbear lint: could not judge:", err)
		return ExitUnjudged
	}
	return code
}

// check refuses what contradicts itself.
// It runs before anything is read, so that a bad command line costs no time. Two
// reports on standard output would be unreadable for any tool.
func (o *options) check() error {
	if o.parallel < 1 {
		return fmt.Errorf("-p %d: want at least 1", o.parallel)
	}
	if o.dir != "" {
		if st, err := os.Stat(o.dir); err != nil {
			return fmt.Errorf("-C: %w", err)
		} else if !st.IsDir() {
			return fmt.Errorf("-C: %s is no directory", o.dir)
		}
	}
	if o.writeBaseline != "" && o.baseline != "" {
		return errors.New("--baseline and --write-baseline: a baseline is written without another one")
	}
	if o.writeBaseline != "" && o.since != "" {
		return errors.New("--write-baseline and --since: a baseline holds the findings of all files")
	}
	if o.watch && (o.fix || o.writeBaseline != "") {
		return errors.New("--watch goes with neither --fix nor --write-baseline")
	}
	toStdout := 0
	for _, out := range o.outputs {
		if out.file == "" {
			toStdout++
		}
	}
	if toStdout > 1 && !o.rules {
		return errors.New("two outputs go to standard output: give one a file, as in -o sarif:forbear.sarif")
	}
	return nil
}

// run judges and renders. An error means that nothing was judged.
// Fixes come before the report, which shows what is left, where it is now. With --write-baseline
// the run passes, whatever it found: the baseline accepts it.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	if o.printSettings {
		set, err := o.configure(stderr)
		if err != nil {
			return 0, err
		}
		text, err := set.YAML()
		if err == nil {
			_, err = stdout.Write(text)
		}
		return ExitPass, err
	}
	if o.whyAt != "" {
		if _, err := o.configure(stderr); err != nil {
			return 0, err
		}
		return ExitPass, o.why(ctx, stdout)
	}
	rep, v, err := o.round(ctx, stderr)
	if err != nil {
		return 0, o.unjudged(err, v, stdout)
	}
	if o.fix {
		applied, err := o.applyFixes(v.loaded, rep, stderr)
		if err != nil {
			return 0, err
		}
		if applied {
			if rep, v, err = o.afterFixes(ctx, v.complete(), stderr); err != nil {
				return 0, o.unjudged(err, v, stdout)
			}
		}
	}
	if o.writeBaseline != "" && v.complete() {
		if err := toFile(o.writeBaseline, rep.WriteBaseline); err != nil {
			return 0, err
		}
		fmt.Fprintf(stderr, "forbear lint: %d findings written to %s\n", len(rep.Counting()), o.writeBaseline)
		return ExitPass, nil
	}
	if err := o.render(rep, stdout); err != nil {
		return 0, err
	}
	switch {
	case !v.complete():
		if o.writeBaseline != "" {
			fmt.Fprintf(stderr, "forbear lint: %s is not written: it would lack the findings of what was not judged\n", o.writeBaseline)
		}
		return ExitUnjudged, nil
	case failing(rep) > 0:
		return ExitFindings, nil
	}
	return ExitPass, nil
}

// afterFixes judges the code as the fixes have left it: lines have moved, and what
// is left may have a fix that did not fit beside another one. What the first look
// has said on standard error is not said again, unless the code was whole then.
func (o *options) afterFixes(ctx context.Context, whole bool, stderr io.Writer) (*report.Report, *verdict, error) {
	again := *o
	again.fix = false
	rep, v, err := again.round(ctx, io.Discard)
	if err == nil && whole {
		v.complain(stderr)
	}
	return rep, v, err
}

// round reads what a run depends on, judges, and returns the report. The verdict
// is there with an error too, if only the packages are at fault.
// The order matters: settings come before the first analysis, which reads them;
// identities come before any finding is left out, so that ordinals do not depend
// on flags.
func (o *options) round(ctx context.Context, stderr io.Writer) (*report.Report, *verdict, error) {
	set, err := o.configure(stderr)
	if err != nil {
		return nil, nil, err
	}
	if err := o.confidences(set); err != nil {
		return nil, nil, err
	}
	accepted, err := readBaseline(o.baseline)
	if err != nil {
		return nil, nil, err
	}
	changed, err := changedFiles(ctx, o.dir, o.since)
	if err != nil {
		return nil, nil, err
	}
	v, err := o.judge(ctx, set, stderr)
	if err != nil {
		return nil, v, err
	}
	v.complain(stderr)
	// A waiver is known to be unused only after a look at the whole module.
	if changed == nil && v.complete() && slices.Equal(o.patterns, []string{"./..."}) {
		unusedWaivers(set, stderr)
	}
	return o.report(v, accepted, changed), v, nil
}

// confidences decides what fails and what is shown.
// The flag counts more than the settings. Medium findings are always shown; low
// ones only when they fail or when --all asks for them.
func (o *options) confidences(set *settings.Settings) (err error) {
	if !o.failOnSaid {
		if o.failOn, err = set.Least(); err != nil {
			return err
		}
	}
	o.least = min(rule.Medium, o.failOn)
	if o.all {
		o.least = rule.Low
	}
	return nil
}

// readBaseline reads accepted findings; without a name there are none.
// A file that is named and missing is an error: an empty baseline in its place
// would fail the run for the wrong reason.
func readBaseline(name string) (*report.Baseline, error) {
	if name == "" {
		return nil, nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w (--write-baseline writes one)", err)
	}
	b, err := report.ReadBaseline(src)
	if err != nil {
		return nil, fmt.Errorf("--baseline %s: %w", name, err)
	}
	return b, nil
}

// explain prints the documentation of a rule.
// Rules about directives have no examples.
func explain(id string, stdout, stderr io.Writer) int {
	d, ok := lint.Explain(id)
	if !ok {
		fmt.Fprintf(stderr, "forbear lint: rule %q is unknown: forbear lint --rules lists them\n", id)
		return ExitUnjudged
	}
	fmt.Fprintf(stdout, "%s %s: %s (%s)\n\nFix: %s.\n\n%s\n", d.ID, d.Name, d.Title, d.Standard, d.Remedy, d.Text)
	if d.Bad != "" {
		fmt.Fprintf(stdout, "\nReported:\n\n%s\n\nInstead:\n\n%s\n", indent(d.Bad), indent(d.Good))
	}
	return ExitPass
}

// indent sets a code example off from the text around it.
func indent(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }

// terminal reports whether w is a terminal.
// Progress is drawn on terminals only: its control characters would spoil a log.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
