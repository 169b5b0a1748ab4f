package driver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/forbear-go/forbear/internal/report"
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

// options are the parsed command line. The zero value is not usable: parseArgs
// sets the defaults.
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
	explainAt      string // FILE:LINE
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
	quiet          bool
	patterns       []string
}

// Main runs forbear lint with its arguments and returns the exit code. A nil
// reader leaves out the flags about policy files. The settings are process-wide,
// so that one process runs one Main at a time. Reports go to stdout; faults, notes
// and progress go to stderr, so that a report can be piped.
func Main(ctx context.Context, reader PolicyReader, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(reader, args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return ExitPass
	}
	if err != nil {
		fmt.Fprintln(stderr, "forbear lint:", err)
		return ExitUnjudged
	}
	code := ExitPass
	switch {
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

// run does what the command line asks for, once it is known to be sound. An error
// means that nothing was judged. The reports that were asked for say so then: those
// of an earlier run would pass for those of this one.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) (code int, err error) {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return 0, err
	}
	v := &verdict{loaded: &loaded{dir: dir}}
	set, err := o.configure(stderr)
	switch {
	case err != nil:
	case o.printSettings:
		return ExitPass, printSettings(set, stdout)
	case o.explainAt != "":
		return ExitPass, o.explainFinding(ctx, stdout)
	default:
		code, err = o.gate(ctx, v, set, stdout, stderr)
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

// gate judges, fixes, and writes a baseline or the reports. What is left after
// fixes is judged anew, since lines have moved, and there may be a fix that did not
// fit beside another one. What the first look has said on standard error is not
// said again, unless the code was whole then.
func (o *options) gate(ctx context.Context, v *verdict, set *settings.Settings, stdout, stderr io.Writer) (int, error) {
	rep, err := o.round(ctx, v, set, stderr)
	if err != nil {
		return 0, err
	}
	if o.fix {
		applied, err := applyFixes(rep.Findings, v.loaded)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(stderr, "forbear lint: %d fixes applied\n", applied)
		if applied > 0 {
			again, whole := *o, v.complete()
			again.fix = false
			if rep, err = again.round(ctx, v, set, io.Discard); err != nil {
				return 0, err
			}
			if whole {
				v.complain(stderr)
			}
		}
	}
	if o.writeBaseline != "" && v.complete() {
		// The run passes, whatever it found: the baseline accepts it.
		fmt.Fprintf(stderr, "forbear lint: %d findings written to %s\n", len(rep.Counting()), o.writeBaseline)
		return ExitPass, toFile(o.writeBaseline, rep.WriteBaseline)
	}
	if err := o.render(rep, stdout); err != nil {
		return 0, err
	}
	switch {
	case v.complete() && failing(rep) == 0:
		return ExitPass, nil
	case v.complete():
		return ExitFindings, nil
	case o.writeBaseline != "":
		fmt.Fprintf(stderr, "forbear lint: %s is not written: it would lack the findings of what was not judged\n", o.writeBaseline)
	}
	return ExitUnjudged, nil
}

// round reads what a run depends on, judges into v, and returns the report.
func (o *options) round(ctx context.Context, v *verdict, set *settings.Settings, stderr io.Writer) (*report.Report, error) {
	if err := o.confidences(set); err != nil {
		return nil, err
	}
	accepted, err := readBaseline(o.baseline)
	if err != nil {
		return nil, err
	}
	differs, err := since(ctx, o.dir, o.since)
	if err != nil {
		return nil, err
	}
	if err := o.judge(ctx, v, stderr); err != nil {
		return nil, err
	}
	v.complain(stderr)
	// A waiver is known to be unused only after a look at the whole module.
	if v.complete() && slices.Equal(o.patterns, []string{"./..."}) {
		unusedWaivers(set, stderr)
	}
	return o.report(v, accepted, differs), nil
}

// confidences decides what fails and what is shown. The flag counts more than the
// settings. Medium findings are always shown; low ones only when they fail or when
// --all asks for them.
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

// readBaseline reads accepted findings; without a name there are none. A file that
// is named and missing is an error: an empty baseline in its place would fail the
// run for the wrong reason.
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
