package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// explain prints the documentation of a rule.
func explain(id string, stdout io.Writer) error {
	d, ok := lint.Explain(strings.ToUpper(id))
	if !ok {
		return fmt.Errorf("unknown rule %q: forbear lint --rules lists them", id)
	}
	Explain(stdout, d)
	return nil
}

// Explain writes the documentation of a rule. Rules about directives have no examples.
func Explain(stdout io.Writer, d *lint.Doc) {
	fmt.Fprintf(stdout, "%s %s: %s (%s)\n\nFix: %s.\n\n%s\n", d.ID, d.Name, d.Title, d.Standard, d.Remedy, d.Text)
	if d.Bad != "" {
		indent := func(code string) string { return "\t" + strings.ReplaceAll(code, "\n", "\n\t") }
		fmt.Fprintf(stdout, "\nReported:\n\n%s\n\nInstead:\n\n%s\n", indent(d.Bad), indent(d.Good))
	}
}

// listRules prints the rules, as text or as JSON. JSON is for tools that render the
// documentation; its fields are those of lint.Doc.
func listRules(o *options, stdout io.Writer) error {
	if len(o.outputs) == 1 && o.outputs[0].Format == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(lint.Rules())
	}
	for _, d := range lint.Rules() {
		fmt.Fprintf(stdout, "%s  %-19s  %s (%s)\n", d.ID, d.Name, d.Title, d.Standard)
	}
	return nil
}

// placeAt is FILE:LINE, or FILE:LINE:COLUMN. A file's name may have a colon itself,
// as behind the letter of a drive.
var placeAt = regexp.MustCompile(`^(.+?\.go):([1-9]\d{0,8})(?::\d+)?$`)

// explainFinding prints on which facts the findings at a place rest, those of low
// confidence and the suppressed ones among them. It judges the package of the file
// anew, since no report keeps the facts.
func (o *options) explainFinding(ctx context.Context, stdout, stderr io.Writer) (code int, err error) {
	at := placeAt.FindStringSubmatch(o.explainAt)
	if at == nil {
		return 0, fmt.Errorf("--explain-finding %q: want FILE.go:LINE", o.explainAt)
	}
	line, _ := strconv.Atoi(at[2])
	file := real((&loaded{dir: o.dir}).abs(at[1]))
	if _, err := os.Stat(file); err != nil {
		return 0, fmt.Errorf("--explain-finding: %w", err)
	}
	folder, err := filepath.Rel(real(o.dir), filepath.Dir(file))
	if err != nil {
		return 0, err
	}
	o.patterns = []string{"./" + filepath.ToSlash(folder)}
	v, err := o.judge(ctx, stderr)
	if err != nil {
		return 0, err
	}
	v.complain(stderr)
	found := false
	for _, f := range v.findings {
		last := f.Line
		for _, p := range f.Related {
			if p.File == f.File {
				last = max(last, p.Line)
			}
		}
		if real(v.abs(f.File)) == file && f.Line <= line && line <= last {
			v.account(stdout, f)
			found = true
		}
	}
	switch {
	case len(v.problems) > 0:
		return ExitUnjudged, nil
	case !found:
		_, err = fmt.Fprintf(stdout, "%s:%d: no finding here\n", at[1], line)
	}
	return ExitPass, err
}

// account prints a finding, and one fact a line.
func (v *verdict) account(w io.Writer, f *finding) {
	d, _ := lint.Explain(f.ID)
	suppressed := ""
	if f.Suppressed != "" {
		suppressed = " [suppressed: " + f.Suppressed + "]"
	}
	fmt.Fprintf(w, "%s:%d:%d: %s %s (%s): %s%s\n", f.File, f.Line, f.Column, f.ID, d.Name, f.Confidence, f.Message, suppressed)
	score := 0
	for _, e := range f.of.Evidence {
		score += e.Weight
		fmt.Fprintf(w, "  %+d  %s\n", e.Weight, e.Text)
	}
	if len(f.of.Evidence) > 0 {
		fmt.Fprintf(w, "  %d in all; a retry is certain from %d, and shown from %d\n", score, rule.Sufficient, rule.Likely)
	}
}
