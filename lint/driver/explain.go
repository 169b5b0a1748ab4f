package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint"
)

// explain prints the documentation of a rule. Rules about directives have no
// examples.
func explain(id string, stdout io.Writer) error {
	d, ok := lint.Explain(id)
	if !ok {
		return fmt.Errorf("rule %q is unknown: forbear lint --rules lists them", id)
	}
	fmt.Fprintf(stdout, "%s %s: %s (%s)\n\nFix: %s.\n\n%s\n", d.ID, d.Name, d.Title, d.Standard, d.Remedy, d.Text)
	if d.Bad != "" {
		fmt.Fprintf(stdout, "\nReported:\n\n%s\n\nInstead:\n\n%s\n", indent(d.Bad), indent(d.Good))
	}
	return nil
}

// indent sets a code example off from the text around it.
func indent(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }

// listRules prints the rules, as text or as JSON. JSON is for tools that render
// the documentation; its fields are those of lint.Doc.
func listRules(o *options, stdout io.Writer) error {
	if len(o.outputs) == 1 && o.outputs[0].format == "json" {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(lint.Rules())
	}
	for _, d := range lint.Rules() {
		fmt.Fprintf(stdout, "%s  %-19s  %s (%s)\n", d.ID, d.Name, d.Title, d.Standard)
	}
	return nil
}

// explainFinding prints on which facts the findings at a place rest, those of low
// confidence and the suppressed ones among them. It judges the package of the file
// anew, since no report keeps the facts.
func (o *options) explainFinding(ctx context.Context, stdout io.Writer) error {
	file, line, err := parsePlace(o.explainAt)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("--explain-finding: %w", err)
	}
	one, v := *o, &verdict{}
	one.patterns = []string{folder(dir, file)}
	if err := one.judge(ctx, v, io.Discard); err != nil {
		return err
	}
	if !v.complete() {
		var said strings.Builder
		v.complain(&said)
		return errors.New(strings.TrimSpace(said.String()))
	}
	at := real(file)
	if !slices.ContainsFunc(v.roots, func(p *packages.Package) bool {
		return slices.ContainsFunc(p.GoFiles, func(name string) bool { return real(name) == at })
	}) {
		return fmt.Errorf("--explain-finding: %s is not judged: it is a test, or for another system or other --tags", v.rel(file))
	}
	found := false
	for _, f := range v.findings {
		if real(v.abs(f.File)) == at && f.Line <= line && line <= v.lastLine(f) {
			v.account(stdout, f)
			found = true
		}
	}
	if !found {
		_, err = fmt.Fprintf(stdout, "%s:%d: no finding is here\n", v.rel(file), line)
	}
	return err
}

// account prints a finding, and one fact a line.
func (v *verdict) account(w io.Writer, f *finding) {
	d, _ := lint.Explain(f.ID)
	suppressed := ""
	if f.Suppressed != "" {
		suppressed = " [suppressed: " + f.Suppressed + "]"
	}
	fmt.Fprintf(w, "%s:%d:%d: %s %s (%s): %s%s\n", f.File, f.Line, f.Column, f.ID, d.Name, f.Confidence, f.Message, suppressed)
	for _, e := range f.of.Evidence {
		side, at := "for", ""
		if e.Against {
			side = "against"
		}
		if e.Pos.IsValid() {
			p := v.place(e.Pos, e.Pos, "")
			at = fmt.Sprintf(" (%s:%d)", p.File, p.Line)
		}
		fmt.Fprintf(w, "  %-8s %s%s\n", side, e.Text, at)
	}
}

// lastLine is the last line that belongs to a finding: that of the statement or
// the call that it is reported at.
func (v *verdict) lastLine(f *finding) int {
	last := max(f.Line, f.EndLine)
	for _, file := range f.in.Syntax {
		if f.of.Pos < file.FileStart || file.FileEnd <= f.of.Pos {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil && n.Pos() == f.of.Pos {
				last = max(last, v.position(n.End()).Line)
			}
			return n != nil && n.Pos() <= f.of.Pos && f.of.Pos < n.End()
		})
	}
	return last
}

// folder is the pattern for the package of a file, seen from dir. The go command
// wants a path that leads out of dir no further than it must, whatever links were
// followed on the way.
func folder(dir, file string) string {
	for _, from := range [][2]string{{real(dir), real(filepath.Dir(file))}, {dir, filepath.Dir(file)}} {
		if r, err := filepath.Rel(from[0], from[1]); err == nil && filepath.IsLocal(r) {
			return "./" + filepath.ToSlash(r)
		}
	}
	return filepath.Dir(file)
}

// placeAt is FILE:LINE, or FILE:LINE:COLUMN. A file's name may have a colon itself,
// as behind the letter of a drive.
var placeAt = regexp.MustCompile(`^(.+?\.go):([1-9]\d{0,8})(?::\d+)?$`)

// parsePlace reads FILE:LINE, with a column behind it or not, as reports write
// it.
func parsePlace(s string) (file string, line int, err error) {
	at := placeAt.FindStringSubmatch(s)
	if at == nil {
		return "", 0, fmt.Errorf("--explain-finding %q: want FILE.go:LINE", s)
	}
	line, err = strconv.Atoi(at[2])
	return filepath.Clean(filepath.FromSlash(at[1])), line, err
}
