package driver

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/internal/flaghint"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// About and Examples are the manual of the command, between its usage and its flags
// and behind them. They are data, for those who show it elsewhere than in --help.
const (
	About = `
Packages default to ./... Findings of high confidence fail; those of medium
confidence are warnings, and --all shows those of low confidence.
docs/guides/lint.md describes the settings.
Exit codes: 0 nothing fails, 1 findings fail, 2 could not judge.`
	Examples = `
forbear lint ./...
forbear lint -o text -o sarif:forbear.sarif ./...
forbear lint --fix ./...
forbear lint --since origin/main ./...
forbear lint --policy deploy/policy.yaml --allowed-signers signers ./...
forbear lint --write-baseline .forbear-baseline.json ./...
forbear lint --baseline .forbear-baseline.json ./...
forbear lint --explain FB1001
forbear lint --explain-finding client/http.go:84
`
)

// options are the parsed command line. The zero value is not usable: parseArgs sets
// the defaults.
type options struct {
	dir, tags string
	parallel  int
	patterns  []string

	// What is shown, and what fails.
	outputs                    []report.Output
	confidence                 string // the least that fails, or "" for that of the settings
	failOn, least              rule.Confidence
	all, showSuppressed, quiet bool
	baseline, since            string

	// What is done besides, or instead of judging.
	fix, rules, printSettings         bool
	writeBaseline, explain, explainAt string

	config, policy, signers string
	readPolicy              PolicyReader
}

// Flags returns the flags of Main as they are before a command line is parsed, for
// manuals and the completion of shells.
func Flags(reader PolicyReader) *flag.FlagSet {
	fs, _ := flags(reader)
	return fs
}

// flags registers the flags, which set the options. Without a reader, those about
// policy files are unknown flags and not silently ignored.
func flags(reader PolicyReader) (*flag.FlagSet, *options) {
	o := &options{readPolicy: reader}
	fs := flag.NewFlagSet("forbear lint", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Func("o", "output `format[:file]`: text, json, sarif, github or junit; repeatable (default text)", func(s string) error {
		format, file, toFile := strings.Cut(s, ":")
		switch {
		case !slices.Contains(report.Formats(), format):
			return fmt.Errorf("unknown format %q: want %s", format, strings.Join(report.Formats(), ", "))
		case toFile && file == "":
			return fmt.Errorf("%q names no file: want %s:FILE", s, format)
		}
		o.outputs = append(o.outputs, report.Output{Format: format, File: file})
		return nil
	})
	fs.Func("fail-on", "lowest `confidence` that fails: high, medium or low (default high)", func(s string) error {
		o.confidence = s
		_, err := rule.ParseConfidence(s)
		return err
	})
	fs.BoolVar(&o.all, "all", false, "show findings of low confidence too")
	fs.StringVar(&o.baseline, "baseline", "", "`file` of accepted findings; only new ones fail")
	fs.StringVar(&o.writeBaseline, "write-baseline", "", "write all findings to `file` and pass")
	fs.StringVar(&o.since, "since", "", "only files that differ from this git `revision`")
	fs.BoolVar(&o.fix, "fix", false, "apply the suggested fixes")
	fs.StringVar(&o.explain, "explain", "", "explain the `rule` and exit")
	fs.StringVar(&o.explainAt, "explain-finding", "", "show the facts behind the findings at `file:line`, and exit")
	fs.BoolVar(&o.rules, "rules", false, "list the rules and exit")
	fs.StringVar(&o.config, "config", "", "settings `file` (default: .forbear-lint.yaml here or above)")
	if reader != nil {
		fs.StringVar(&o.policy, "policy", "", "policy `file`, or none (default: forbear.yaml here or above)")
		fs.StringVar(&o.signers, "allowed-signers", "", "`file` of those who may sign waivers (see ssh-keygen(1))")
	}
	fs.BoolVar(&o.printSettings, "print-settings", false, "print the effective settings, for go vet and golangci-lint, and exit")
	fs.StringVar(&o.dir, "C", "", "run in this `directory`")
	fs.StringVar(&o.tags, "tags", "", "build `tags`")
	fs.IntVar(&o.parallel, "p", 0, "use at most `n` processors (default: all)")
	fs.BoolVar(&o.showSuppressed, "show-suppressed", false, "show suppressed findings too")
	fs.Bool("no-cache", false, "no effect: nothing is cached")
	fs.BoolVar(&o.quiet, "q", false, "no progress")
	return fs, o
}

// parseArgs reads the command line; help goes to stdout when it is asked for. The flag
// package stops at the first argument that is no flag. parseArgs goes on behind it, so
// that forbear lint ./... --fix works as people expect.
func parseArgs(reader PolicyReader, args []string, stdout io.Writer) (*options, error) {
	fs, o := flags(reader)
	for rest := args; ; rest = fs.Args()[1:] {
		if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
			help(stdout, fs)
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%w%s (see forbear lint --help)", err, flaghint.Of(fs, err))
		}
		if at := len(rest) - fs.NArg() - 1; at >= 0 && rest[at] == "--" { // all behind it are packages
			o.patterns = append(o.patterns, fs.Args()...)
			break
		}
		if fs.NArg() == 0 {
			break
		}
		o.patterns = append(o.patterns, fs.Arg(0))
	}
	if err := single(fs, o.patterns); err != nil {
		return nil, err
	}
	if len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	return o, o.check()
}

// single refuses what would be ignored beside a flag that answers a question instead of
// judging. Each comes with the flags that have a part in the answer.
func single(fs *flag.FlagSet, patterns []string) (err error) {
	for name, with := range map[string]string{
		"explain": "", "rules": "o", "print-settings": "config policy allowed-signers", "explain-finding": "config policy allowed-signers tags p all no-cache",
	} {
		if f := fs.Lookup(name); f.Value.String() == f.DefValue {
			continue
		}
		if len(patterns) > 0 {
			return fmt.Errorf("--%s judges no packages: drop %s", name, patterns[0])
		}
		fs.Visit(func(f *flag.Flag) {
			if f.Name != name && !slices.Contains(strings.Fields("C q "+with), f.Name) {
				dashes := "--"[:min(len(f.Name), 2)]
				err = fmt.Errorf("--%s does not use %s%s: drop it", name, dashes, f.Name)
			}
		})
	}
	return err
}

// check refuses what contradicts itself, before anything is read. Two reports on
// standard output would be unreadable for any tool.
func (o *options) check() (err error) {
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	st, err := os.Stat(o.dir)
	toStdout := 0
	for _, out := range o.outputs {
		if out.File == "" {
			toStdout++
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("-C: %w", err)
	case !st.IsDir():
		return fmt.Errorf("-C: %s is not a directory", o.dir)
	case o.parallel < 0:
		return fmt.Errorf("-p %d: want at least 1", o.parallel)
	case o.writeBaseline != "" && o.baseline != "":
		return errors.New("--baseline and --write-baseline cannot be combined")
	case o.writeBaseline != "" && o.since != "":
		return errors.New("--write-baseline and --since cannot be combined: a baseline covers all files")
	case toStdout > 1 && !o.rules:
		return errors.New("two outputs go to standard output: give one a file, as in -o sarif:forbear.sarif")
	}
	return nil
}

// help writes the manual of the command. An example of what this program does not have
// is left out.
func help(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintf(w, "forbear lint: find retry bugs in Go source\n\nUsage: forbear lint [FLAGS] [PACKAGES]\n%s\n\nFlags:\n", About)
	fs.SetOutput(w)
	fs.PrintDefaults()
	fmt.Fprint(w, "\nExamples:\n")
	for line := range strings.Lines(strings.TrimSpace(Examples)) {
		if fs.Lookup("policy") != nil || !strings.Contains(line, "--policy") {
			fmt.Fprint(w, "  ", line)
		}
	}
	fmt.Fprintln(w)
}
