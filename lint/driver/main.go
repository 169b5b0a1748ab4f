package driver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint/settings"
)

// Exit codes of Main. They are part of the interface: CI scripts tell findings from a
// run that judged nothing.
const (
	ExitPass     = 0
	ExitFindings = 1
	ExitUnjudged = 2 // bad usage, code that does not compile, an unreadable file
)

// Main runs forbear lint with its arguments and returns the exit code. A nil reader
// leaves out the flags about policy files. The settings are process-wide, so that one
// process runs one Main at a time. Reports go to stdout; faults, notes and progress go
// to stderr, so that a report can be piped.
func Main(ctx context.Context, reader PolicyReader, args []string, stdout, stderr io.Writer) (code int) {
	o, err := parseArgs(reader, args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return ExitPass
	case err != nil:
	case o.explain != "":
		err = explain(o.explain, stdout)
	case o.rules:
		err = listRules(o, stdout)
	default:
		code, err = o.run(ctx, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "forbear lint:", err)
		return ExitUnjudged
	}
	return code
}

// run does what needs settings. An error means that nothing was judged. The reports
// that were asked for say so then: those of an earlier run would pass for those of
// this one.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) (code int, err error) {
	v := &verdict{loaded: &loaded{dir: o.dir}}
	set, err := o.configure(stderr)
	switch {
	case err != nil:
	case o.printSettings:
		return ExitPass, printSettings(set, stdout)
	case o.explainAt != "":
		return o.explainFinding(ctx, stdout, stderr)
	default:
		code, v, err = o.gate(ctx, set, stdout, stderr)
	}
	if err == nil {
		return code, nil
	}
	if len(o.outputs) > 0 {
		rep := o.report(v, nil, nil)
		rep.Problems = append(rep.Problems, report.Problem{Kind: report.Unread, Message: err.Error(), Fatal: true})
		err = errors.Join(err, o.render(rep, stdout))
	}
	return 0, fmt.Errorf("could not judge: %w", err)
}

// gate judges, fixes, and writes a baseline or the reports. What is left after fixes
// is judged anew, since lines have moved, and there may be a fix that did not fit
// beside another one.
func (o *options) gate(ctx context.Context, set *settings.Settings, stdout, stderr io.Writer) (code int, v *verdict, err error) {
	v, rep, err := o.round(ctx, stderr)
	if err != nil {
		return 0, v, err
	}
	v.complain(stderr)
	// A waiver is known to be unused only after a look at the whole module.
	if len(v.problems) == 0 && slices.Equal(o.patterns, []string{"./..."}) && o.since == "" {
		unusedWaivers(set, stderr)
	}
	if o.fix {
		applied, err := applyFixes(rep.Findings, v.loaded)
		if err != nil {
			return 0, v, err
		}
		fmt.Fprintf(stderr, "forbear lint: %s applied\n", fixes(applied))
		if applied > 0 {
			whole := len(v.problems) == 0
			o.fix = false
			if v, rep, err = o.round(ctx, stderr); err != nil {
				return 0, v, err
			}
			if whole { // else it has been said
				v.complain(stderr)
			}
		}
	}
	switch {
	case o.writeBaseline != "" && len(v.problems) == 0:
		// The run passes, whatever it found: the baseline accepts it.
		fmt.Fprintf(stderr, "forbear lint: %s written to %s\n", report.Plural(len(rep.Counting()), "finding"), o.writeBaseline)
		return ExitPass, v, report.ToFile(o.writeBaseline, rep.WriteBaseline)
	case o.writeBaseline != "":
		fmt.Fprintf(stderr, "forbear lint: %s was not written: some packages could not be judged\n", o.writeBaseline)
	}
	switch {
	case len(v.problems) > 0:
		code = ExitUnjudged
	case failing(rep) > 0:
		code = ExitFindings
	}
	return code, v, o.render(rep, stdout)
}

// round reads what a run depends on, judges, and makes the report.
func (o *options) round(ctx context.Context, stderr io.Writer) (*verdict, *report.Report, error) {
	v := &verdict{loaded: &loaded{dir: o.dir}}
	accepted, err := readBaseline(o.baseline)
	if err != nil {
		return v, nil, err
	}
	differs, err := since(ctx, o.dir, o.since)
	if err != nil {
		return v, nil, err
	}
	if v, err = o.judge(ctx, stderr); err != nil {
		return v, nil, err
	}
	return v, o.report(v, accepted, differs), nil
}

// readBaseline reads accepted findings; without a name there are none. A file that is
// named and missing is an error: an empty baseline in its place would fail the run for
// the wrong reason.
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

// fixes counts fixes in words.
func fixes(n int) string {
	if n == 1 {
		return "1 fix"
	}
	return fmt.Sprintf("%d fixes", n)
}
