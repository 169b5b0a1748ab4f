package driver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// verdict is what is known of the packages after a run. A pipeline that reads nothing
// but its report must not take one with problems for that of clean code.
type verdict struct {
	*loaded
	findings  []*finding       // in the order of the report
	notJudged []string         // paths of packages that were asked for
	problems  []report.Problem // why they were not judged; all are fatal
}

// judge reads the packages and runs the analyzers. The verdict has what little is
// known when there is an error.
func (o *options) judge(ctx context.Context, stderr io.Writer) (*verdict, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.parallel))
	defer o.progress(stderr, "")
	o.progress(stderr, "judging")
	l, err := load(ctx, o.dir, o.tags, o.patterns)
	v := &verdict{loaded: l, problems: l.faults}
	if err != nil {
		return v, err
	}
	judged := slices.SortedFunc(maps.Keys(l.judged), func(p, q *packages.Package) int { return cmp.Compare(p.ID, q.ID) })
	graph, err := checker.Analyze(analyzers(), judged, nil)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return v, err
	}
	v.gather(graph)
	if len(v.problems) > 0 && !inModule(l.dir) {
		v.problems = append(v.problems, report.Problem{Kind: report.Faulty, Message: "there is no Go module here: run go mod init first, or name the folder of a module with -C", Fatal: true})
	}
	return v, nil
}

// inModule reports whether a folder belongs to a module or a workspace.
func inModule(dir string) bool {
	if work := os.Getenv("GOWORK"); work != "" && work != "off" {
		return true
	}
	for {
		for _, name := range []string{"go.mod", "go.work"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
		above := filepath.Dir(dir)
		if above == dir {
			return false
		}
		dir = above
	}
}

// gather takes the findings of the packages that were asked for, and says which
// packages were not judged. Actions come behind what they depend on, so that the
// first error of a package is the cause of its others.
func (v *verdict) gather(graph *checker.Graph) {
	failed := map[*packages.Package]bool{}
	for act := range graph.All() {
		p := act.Package
		if act.Err != nil && !failed[p] {
			failed[p] = true
			v.problems = append(v.problems, report.Problem{Kind: report.Unjudged, Message: fmt.Sprintf("package %s: %v", p.PkgPath, act.Err), Fatal: true})
		}
		if found, ok := act.Result.(rule.Findings); ok && act.IsRoot && slices.Contains(v.roots, p) {
			for _, f := range found {
				v.findings = append(v.findings, v.finding(p, f))
			}
		}
	}
	// A part of a package's findings would pass for all of them.
	v.findings = slices.DeleteFunc(v.findings, func(f *finding) bool { return failed[f.in] })
	identify(v.findings)
	var broken []string
	for _, p := range v.roots {
		switch {
		case failed[p]:
			v.notJudged = append(v.notJudged, p.PkgPath)
		case !v.judged[p] && (len(p.Syntax) > 0 || len(v.faultsBelow([]*packages.Package{p})) > 0): // else there is nothing to judge
			broken = append(broken, p.PkgPath)
		}
	}
	if slices.Sort(broken); len(broken) > 0 {
		v.problems = append(v.problems, report.Problem{Kind: report.Unjudged, Message: because(broken), Fatal: true})
	}
	v.notJudged = slices.Sorted(slices.Values(append(v.notJudged, broken...)))
}

// progress draws one line on a terminal, over the one before it. Elsewhere its control
// characters would spoil a log.
func (o *options) progress(stderr io.Writer, text string) {
	f, ok := stderr.(*os.File)
	if !ok || o.quiet {
		return
	}
	if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprint(stderr, "\r\x1b[K", text)
	}
}

// analyzers are those of the rules, and the one that judges directives. They and what
// they require are caught when they panic.
var analyzers = sync.OnceValue(func() []*analysis.Analyzer {
	all := append(lint.Analyzers(), lint.Directives)
	reached := slices.Clone(all)
	for i := 0; i < len(reached); i++ {
		for _, a := range reached[i].Requires {
			if !slices.Contains(reached, a) {
				reached = append(reached, a)
			}
		}
	}
	for _, a := range reached {
		a.Run = caught(a.Name, a.Run)
	}
	return all
})

// caught makes an error with its stack of a panic: one odd package must not take the
// report on all others with it.
func caught(name string, run func(*analysis.Pass) (any, error)) func(*analysis.Pass) (any, error) {
	return func(pass *analysis.Pass) (result any, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("%s panicked: %v\n%s", name, v, debug.Stack())
			}
		}()
		return run(pass)
	}
}
