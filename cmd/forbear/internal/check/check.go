package check

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/version"
	"github.com/forbear-go/forbear/internal/nearest"
	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/policyfile"
	"github.com/forbear-go/forbear/policyfile/check"
)

func Command() *cli.Command {
	c := &cli.Command{
		Name:    "check",
		Summary: "hold policy files against the standard, as a gate",
		Usage:   "[FLAGS] FILE...",
		About: `
Check judges policy files, and the retry settings of others: gRPC service
configs, Envoy and Istio, nginx, HAProxy. Files that are given together are
judged together: who owns a dependency, and what the retries of several layers
multiply to.

Exit code 0 means that nothing was found at or above --fail-on, 1 that something
was, 2 that a file could not be read or a question not be judged. A finding that
a valid waiver lifts does not count.`,
		Examples: `
forbear check policy.yaml
forbear check -o text -o sarif:check.sarif services/*/policy.yaml
forbear check --max-amplification 1.5 --max-duration 10s services/*/policy.yaml
forbear check --allowed-signers signers policy.yaml
forbear check --checklist --metrics http://127.0.0.1:9090/metrics policy.yaml
forbear check --explain FC105
`,
	}
	c.Run = func(ctx context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		q := newGate(f)
		files, code, done := c.Operands(std, f, args)
		if done {
			return code
		}
		q.files = files
		return q.run(ctx, std)
	}
	return c
}

// gate is one run of check.
type gate struct {
	check.Options
	files         []string
	outputs       []output
	failOn        report.Severity
	baseline      string
	writeBaseline string
	explain       string
	from          string
	checklist     bool
	metrics       string
}

// output is a format and where it goes: "" is standard output.
type output struct{ format, file string }

func newGate(f *flag.FlagSet) *gate {
	q := &gate{failOn: report.Error}
	f.Func("o", "output `format[:file]`: text, json, sarif, github, junit or markdown; may be repeated", func(v string) error {
		format, file, _ := strings.Cut(v, ":")
		if !slices.Contains(append(report.Formats(), "markdown"), format) {
			return fmt.Errorf("unknown format %q: want %s or markdown", format, strings.Join(report.Formats(), ", "))
		}
		q.outputs = append(q.outputs, output{format, file})
		return nil
	})
	f.Func("fail-on", "the least `severity` that fails: error, warning or note (default error)", func(v string) (err error) {
		q.failOn, err = report.ParseSeverity(v)
		return err
	})
	f.Float64Var(&q.MaxAmplification, "max-amplification", 0, "fail when an outage may multiply a dependency's load by more, budgets included")
	f.DurationVar(&q.MaxDuration, "max-duration", 0, "fail when a synchronous call may take longer")
	f.StringVar(&q.AllowedSigners, "allowed-signers", "", "the `file` that says who may sign waivers (see ssh-keygen(1))")
	f.StringVar(&q.baseline, "baseline", "", "findings in this `file` do not count")
	f.StringVar(&q.writeBaseline, "write-baseline", "", "write what is found into this `file`, and pass")
	f.StringVar(&q.explain, "explain", "", "tell what a finding's `id` means, and end")
	f.StringVar(&q.from, "from", "", "what the files are: forbear, grpc, envoy, istio, nginx or haproxy (default: by their contents)")
	f.BoolVar(&q.checklist, "checklist", false, "answer the review questions, with evidence")
	f.StringVar(&q.metrics, "metrics", "", "for --checklist: scrape this `URL`")
	f.Func("now", "the present, as an RFC 3339 time", func(v string) (err error) {
		q.Now, err = time.Parse(time.RFC3339, v)
		return err
	})
	return q
}

func (q *gate) run(ctx context.Context, std *cli.Streams) int {
	if q.explain != "" {
		return explainRule(std, q.explain)
	}
	if len(q.files) == 0 {
		return std.Fail("check: which files? see forbear check --help")
	}
	sources, unread := q.read(std)
	if q.checklist {
		return q.answers(ctx, std, sources, unread)
	}
	result := check.Run(sources, q.Options)
	for _, err := range result.Unjudged {
		fmt.Fprintln(std.Err, err)
	}
	rep := q.report(result)
	if q.baseline != "" {
		data, err := os.ReadFile(q.baseline)
		if err != nil {
			return std.Fail("check: %v", err)
		}
		b, err := report.ReadBaseline(data)
		if err != nil {
			return std.Fail("check: %s: %v", q.baseline, err)
		}
		b.Apply(rep)
		result.Findings = rep.Findings
	}
	if err := q.write(std, sources, result, rep); err != nil {
		return std.Fail("check: %v", err)
	}
	if unread || len(result.Unjudged) > 0 {
		return cli.ExitUsage
	}
	if q.writeBaseline != "" {
		if err := toFile(q.writeBaseline, rep.WriteBaseline); err != nil {
			return std.Fail("check: %v", err)
		}
		return cli.ExitOK
	}
	if worst, any := result.Worst(); any && worst >= q.failOn {
		return cli.ExitFound
	}
	return cli.ExitOK
}

// read reads all files, and tells the faults of those that cannot be read.
func (q *gate) read(std *cli.Streams) (sources []check.Source, unread bool) {
	for _, name := range q.files {
		data, err := policyfile.Read(name)
		var s check.Source
		if err == nil {
			s, err = check.ReadAs(q.from, name, data)
		}
		if err == nil {
			sources = append(sources, s)
			continue
		}
		unread = true
		if _, ok := errors.AsType[*policyfile.Error](err); ok {
			fmt.Fprintln(std.Err, err) // each line names its place
		} else {
			std.Fail("check: %v", err)
		}
	}
	return sources, unread
}

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

func (q *gate) write(std *cli.Streams, sources []check.Source, result *check.Result, rep *report.Report) error {
	outputs := q.outputs
	if len(outputs) == 0 {
		outputs = []output{{"text", ""}}
	}
	for _, o := range outputs {
		write := func(w io.Writer) error { return rep.Write(w, o.format) }
		switch o.format {
		case "text":
			write = func(w io.Writer) error { return writeText(w, result, rep) }
		case "markdown":
			write = func(w io.Writer) error { return check.Markdown(w, sources, result) }
		}
		var err error
		if o.file == "" {
			err = write(std.Out)
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

// writeText writes the findings, the worst cases and the sum.
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

func explainRule(std *cli.Streams, id string) int {
	r, ok := check.RuleOf(strings.ToUpper(id))
	if !ok {
		var known []string
		for _, r := range check.Rules() {
			known = append(known, r.ID)
		}
		if near, ok := nearest.Of(strings.ToUpper(id), known); ok {
			return std.Fail("unknown finding %q: did you mean %s?", id, near)
		}
		return std.Fail("unknown finding %q: see forbear rules list", id)
	}
	waivable := "no waiver lifts it"
	if r.Waivable {
		waivable = "a waiver of " + r.Standard + " lifts it"
	}
	title := r.ID + " " + r.Name
	if r.Standard != "" {
		title += " (" + r.Standard + ")"
	}
	fmt.Fprintf(std.Out, "%s: %s\n\n%s\n\nWhy: %s\nFix: %s\n%s.\n", title, r.Severity, r.Summary, r.Why, r.Fix, strings.ToUpper(waivable[:1])+waivable[1:])
	return cli.ExitOK
}

func RulesCommand() *cli.Command {
	c := &cli.Command{
		Name:    "rules",
		Summary: "list what check can find",
		Usage:   "list [-o text|json] | explain ID",
		Examples: `
forbear rules list
forbear rules list -o json
forbear rules explain FC105
`,
	}
	c.Run = func(_ context.Context, std *cli.Streams, args []string) int {
		f := c.Flags()
		format := f.String("o", "text", "output format: `text or json`")
		words, code, done := c.Operands(std, f, args)
		switch {
		case done:
			return code
		case len(words) == 2 && words[0] == "explain":
			return explainRule(std, words[1])
		case len(words) != 1 || words[0] != "list":
			return std.Fail("rules: want list or explain ID (see forbear rules --help)")
		}
		switch *format {
		case "json":
			enc := json.NewEncoder(std.Out)
			enc.SetIndent("", "  ")
			_ = enc.Encode(map[string]any{"schema": "forbear/rules/v1", "rules": check.Rules()})
		case "text":
			for _, r := range check.Rules() {
				fmt.Fprintf(std.Out, "%-6s %-8s %-12s %s\n", r.ID, r.Severity, r.Standard, r.Summary)
			}
		default:
			return std.Fail("rules: unknown format %q: want text or json", *format)
		}
		return cli.ExitOK
	}
	return c
}
