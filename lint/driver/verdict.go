package driver

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint/settings"
)

// verdict is what is known of the packages after a run.
type verdict struct {
	*loaded
	findings  []*finding
	notJudged []string // paths of packages that do not compile, or need one that does not
	errs      []unjudged
	anew      int // packages that the cache did not have
}

// complete reports whether everything was judged, and compiles.
func (v *verdict) complete() bool {
	return len(v.faults) == 0 && len(v.notJudged) == 0 && len(v.errs) == 0
}

// allUnjudged are the paths of all packages that were asked for and not judged.
func (v *verdict) allUnjudged() []string {
	paths := slices.Clone(v.notJudged)
	for _, u := range v.errs {
		if slices.ContainsFunc(v.roots, func(p *packages.Package) bool { return p.PkgPath == u.path }) {
			paths = append(paths, u.path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// judge lists the packages and judges them. The verdict is there with an error too,
// with what little is known then.
func (o *options) judge(ctx context.Context, set *settings.Settings, stderr io.Writer) (*verdict, error) {
	program := make(chan string, 1)
	go func() { // while the go command is at work
		sum, err := "", error(nil)
		if !o.noCache {
			sum, err = programSum()
		}
		if err != nil {
			sum = ""
		}
		program <- sum
	}()
	l, err := load(ctx, o.dir, o.tags, o.patterns)
	if l == nil {
		return nil, err
	}
	v := &verdict{loaded: l}
	if err != nil {
		return v, err
	}
	r := &runner{l: l, analyzers: allAnalyzers()}
	if sum := <-program; sum != "" {
		if k, err := newKeys(sum, set, time.Now()); err == nil {
			r.cache = newCache(cacheDir(), k, r.analyzers)
		}
	}
	if !o.quiet && terminal(stderr) {
		r.progress = func(done, total int, pkg string) {
			fmt.Fprintf(stderr, "\r\x1b[K%d/%d %s", done, total, pkg)
			if done == total {
				fmt.Fprint(stderr, "\r\x1b[K")
			}
		}
	}
	if v.findings, err = r.run(ctx, o.parallel); err != nil {
		return v, err
	}
	v.notJudged, v.errs, v.anew = r.notJudged, r.errs, int(r.anew.Load())
	for _, p := range l.roots {
		// One without files was not even listed as what could be judged.
		if len(sources(p)) == 0 && len(faultsOf(p)) > 0 {
			v.notJudged = append(v.notJudged, p.PkgPath)
		}
	}
	slices.Sort(v.notJudged)
	identify(v.findings)
	r.cache.trim(time.Now())
	return v, nil
}

// complain writes what the go command said, and what it cost.
func (v *verdict) complain(stderr io.Writer) {
	for _, fault := range v.faults {
		fmt.Fprintln(stderr, fault)
	}
	if len(v.notJudged) > 0 {
		fmt.Fprintln(stderr, "forbear lint: not judged:", because(v.notJudged))
	}
	for _, u := range v.errs[:min(len(v.errs), mostShown)] {
		fmt.Fprintln(stderr, "forbear lint: not judged:", u.err)
	}
	if more := len(v.errs) - mostShown; more > 0 {
		fmt.Fprintf(stderr, "forbear lint: not judged: %s more\n", plural(more, "package"))
	}
}

// problems are what a report says of it: the faults with their places, and what
// was not judged. A pipeline that reads nothing but the report must not take it for
// that of clean code.
func (v *verdict) problems() (list []report.Problem) {
	for _, fault := range v.faults {
		list = append(list, v.taken(fault)...)
	}
	if len(v.notJudged) > 0 {
		list = append(list, report.Problem{Kind: report.Unjudged, Message: because(v.notJudged), Fatal: true})
	}
	for _, u := range v.errs {
		first, _, _ := strings.Cut(u.err.Error(), "\n") // a panic has its stack behind it
		list = append(list, report.Problem{Kind: report.Unjudged, Message: first, Fatal: true})
	}
	return list
}

// mostShown bounds what people are shown of what is wrong: one cause has many
// effects.
const mostShown = 20

// because says how many packages were not judged, and which.
func because(paths []string) string {
	text := "1 package, which does not compile or needs one that does not: "
	if n := len(paths); n > 1 {
		text = fmt.Sprintf("%d packages, which do not compile or need one that does not: ", n)
	}
	if len(paths) > mostShown {
		return text + strings.Join(paths[:mostShown], ", ") + fmt.Sprintf(" and %d more", len(paths)-mostShown)
	}
	return text + strings.Join(paths, ", ")
}

// unjudged writes the reports that were asked for when nothing was judged, and
// returns err with what went wrong on the way. The report of an earlier run would
// pass for one of this. There is no verdict when the settings are at fault.
// Without -o nothing is written: standard error says it all.
func (o *options) unjudged(err error, v *verdict, stdout io.Writer) error {
	if len(o.outputs) == 0 {
		return err
	}
	if v == nil {
		dir, failed := filepath.Abs(o.dir)
		if failed != nil {
			return fmt.Errorf("%w; %w", err, failed)
		}
		v = &verdict{loaded: &loaded{dir: dir}}
	}
	rep := o.report(v, nil, nil)
	rep.Problems = append(rep.Problems, report.Problem{Kind: report.Unread, Message: err.Error(), Fatal: true})
	if failed := o.render(rep, stdout); failed != nil {
		return fmt.Errorf("%w; %w", err, failed)
	}
	return err
}
