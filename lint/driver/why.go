package driver

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// account is what is known of one place: of a finding, or of a retry that may
// have none.
type account struct {
	at    report.Place
	last  int // the last line that belongs to it
	title string
	facts []fact
}

// fact is one piece of evidence, with its place as people read it.
type fact struct {
	text, at string
	against  bool
}

// why prints on which facts the findings at a place rest, those of low confidence
// and the suppressed ones among them. Where nothing is reported, it says what is
// known of the retry around the place, or that none is seen.
// It judges the package of the file anew, since no report keeps the facts.
func (o *options) why(ctx context.Context, stdout io.Writer) error {
	file, line, err := parsePlace(o.whyAt)
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
	l, err := load(ctx, o.dir, o.tags, []string{folder(dir, file)})
	if err != nil {
		return err
	}
	if len(l.faults) > 0 {
		return errors.New(strings.Join(l.faults, "\n"))
	}
	at := real(file)
	if !slices.ContainsFunc(l.roots, func(p *packages.Package) bool {
		return slices.ContainsFunc(p.GoFiles, func(name string) bool { return real(name) == at })
	}) {
		return fmt.Errorf("--explain-finding: %s is not judged: it is a test, or for another system or other --tags", l.rel(file))
	}
	var findings, retries []account
	r := &runner{l: l, analyzers: allAnalyzers()}
	r.seen = func(found []*rule.Finding, regions []*retryloop.Region) {
		ends := map[token.Pos]int{} // the last line of each loop
		for _, g := range regions {
			if g.Node != nil {
				ends[g.Pos] = r.nearby(g.Node.End(), g.Node.End(), "").Line
			}
		}
		for _, f := range found {
			d, _ := lint.Explain(f.Rule)
			a := r.account(f.Evidence, r.nearby(f.Pos, f.End, ""))
			a.last = max(a.last, ends[f.Pos])
			a.title = fmt.Sprintf("%s %s (%s): %s", f.Rule, d.Name, f.Confidence, f.Message)
			if f.Suppressed != nil {
				a.title += " [suppressed: " + f.Suppressed.Reason + "]"
			}
			findings = append(findings, a)
		}
		for _, g := range regions {
			a := r.account(rule.Facts(g), r.nearby(g.Pos, g.Pos, ""))
			a.title = rule.Describe(g) + ": no rule reports it"
			a.last = max(a.last, ends[g.Pos])
			retries = append(retries, a)
		}
	}
	if _, err := r.run(ctx, o.parallel); err != nil {
		return err
	}
	if len(r.errs) > 0 {
		return r.errs[0].err
	}
	for _, list := range [][]account{findings, retries} {
		shown := false
		for _, a := range list {
			if real(l.abs(a.at.File)) == at && a.at.Line <= line && line <= a.last {
				a.write(stdout)
				shown = true
			}
		}
		if shown {
			return nil
		}
	}
	_, err = fmt.Fprintf(stdout, "%s:%d: no retry is seen here\n", l.rel(file), line)
	return err
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

// nearby is a place with the file's name relative to the working directory.
func (r *runner) nearby(pos, end token.Pos, msg string) report.Place {
	at := r.place(pos, end, msg)
	at.File = r.l.rel(at.File)
	return at
}

// account gathers the facts at a place.
func (r *runner) account(facts []rule.Evidence, at report.Place) account {
	a := account{at: at, last: at.Line}
	for _, e := range facts {
		f := fact{text: e.Text, against: e.Against}
		if e.Pos.IsValid() {
			p := r.nearby(e.Pos, e.Pos, "")
			f.at = fmt.Sprintf(" (%s:%d)", p.File, p.Line)
		}
		a.facts = append(a.facts, f)
	}
	return a
}

// write prints the place, and one fact a line.
func (a *account) write(w io.Writer) {
	fmt.Fprintf(w, "%s:%d:%d: %s\n", a.at.File, a.at.Line, a.at.Column, a.title)
	for _, f := range a.facts {
		side := "for"
		if f.against {
			side = "against"
		}
		fmt.Fprintf(w, "  %-8s %s%s\n", side, f.text, f.at)
	}
}
