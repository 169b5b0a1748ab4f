package driver

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

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
	if _, err := os.Stat(filepath.Join(o.dir, filepath.FromSlash(file))); err != nil {
		return fmt.Errorf("--explain-finding: %w", err)
	}
	l, err := load(ctx, o.dir, o.tags, []string{"./" + path.Dir(file)})
	if err != nil {
		return err
	}
	if len(l.faults) > 0 {
		return errors.New(strings.Join(l.faults, "\n"))
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
			if a.at.File == file && a.at.Line <= line && line <= a.last {
				a.write(stdout)
				shown = true
			}
		}
		if shown {
			return nil
		}
	}
	_, err = fmt.Fprintf(stdout, "%s:%d: no retry is seen here\n", file, line)
	return err
}

// parsePlace reads FILE:LINE, with a column behind it or not, as reports write
// it.
func parsePlace(s string) (file string, line int, err error) {
	parts := strings.Split(s, ":")
	if len(parts) == 2 || len(parts) == 3 {
		if line, err = strconv.Atoi(parts[1]); err == nil && line > 0 && strings.HasSuffix(parts[0], ".go") {
			return path.Clean(strings.ReplaceAll(parts[0], `\`, "/")), line, nil
		}
	}
	return "", 0, fmt.Errorf("--explain-finding %q: want FILE.go:LINE", s)
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
