package driver

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// verdict is what is known of the packages after a run.
type verdict struct {
	*loaded
	findings []*finding       // in the order of the report
	errs     map[string]error // of analyzers, by the package's path
}

// analyzers are those of the rules, and the one that judges directives. They and
// what they require are caught when they panic.
var analyzers = sync.OnceValue(func() []*analysis.Analyzer {
	all := append(lint.Analyzers(), lint.Directives)
	seen := map[*analysis.Analyzer]bool{}
	var visit func([]*analysis.Analyzer)
	visit = func(list []*analysis.Analyzer) {
		for _, a := range list {
			if !seen[a] {
				seen[a] = true
				a.Run = caught(a.Name, a.Run)
				visit(a.Requires)
			}
		}
	}
	visit(all)
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

// judge reads the packages, runs the analyzers, and fills v in. v holds what little
// is known when there is an error.
func (o *options) judge(ctx context.Context, v *verdict, stderr io.Writer) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.parallel))
	defer o.progress(stderr, "")
	o.progress(stderr, "reading packages")
	l, err := load(ctx, o.dir, o.tags, o.patterns)
	*v = verdict{loaded: l, errs: map[string]error{}}
	if err != nil {
		return err
	}
	o.progress(stderr, "judging "+plural(len(l.judged), "package"))
	// The checker knows no context, and one that has ended is not kept waiting.
	graphs, failed := make(chan *checker.Graph, 1), make(chan error, 1)
	go func() {
		graph, err := checker.Analyze(analyzers(), l.judged, nil)
		if err != nil {
			failed <- err
			return
		}
		graphs <- graph
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-failed:
		return err
	case graph := <-graphs:
		v.gather(graph)
		return nil
	}
}

// gather takes the findings of the packages that were asked for, and the errors
// of all. Actions come behind what they depend on, so that the first error of a
// package is the cause of its others.
func (v *verdict) gather(graph *checker.Graph) {
	asked := map[*packages.Package]bool{}
	for _, p := range v.roots {
		asked[p] = true
	}
	for act := range graph.All() {
		p := act.Package
		if act.Err != nil && v.errs[p.PkgPath] == nil {
			v.errs[p.PkgPath] = fmt.Errorf("package %s: %w", p.PkgPath, act.Err)
		}
		if act.Err != nil || !act.IsRoot || !asked[p] {
			continue
		}
		for _, f := range act.Result.(rule.Findings) {
			v.findings = append(v.findings, v.finding(p, f))
		}
	}
	// A part of a package's findings would pass for all of them.
	v.findings = slices.DeleteFunc(v.findings, func(f *finding) bool { return v.errs[f.Package] != nil })
	identify(v.findings)
}

// progress draws one line on a terminal, over the one before it. Elsewhere its
// control characters would spoil a log.
func (o *options) progress(stderr io.Writer, text string) {
	f, ok := stderr.(*os.File)
	if !ok || o.quiet {
		return
	}
	if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprint(stderr, "\r\x1b[K", text)
	}
}
