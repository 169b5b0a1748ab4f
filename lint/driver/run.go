package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// runner judges the packages of a load, dependencies before dependents, a few
// at a time.
// The mutex guards what is found, and calls of progress, which therefore never
// overlap.
type runner struct {
	l         *loaded
	analyzers []*analysis.Analyzer
	cache     *cache // nil for none
	facts     factStore
	anew      atomic.Int64 // packages that the cache did not have
	progress  func(done, total int, pkg string)
	// seen, unless nil, is given what a package that was asked for holds, one
	// package at a time.
	seen func([]*rule.Finding, []*retryloop.Region)

	mu        sync.Mutex
	findings  []*finding
	notJudged []string // paths of packages that do not compile, or need one that does not
	errs      []unjudged
}

// unjudged is a package that was not judged although it compiles, and why.
type unjudged struct {
	path string
	err  error
}

// run judges all packages with the given number of workers.
// Fewer workers mean less memory: each holds the syntax and the SSA form of one
// package. A canceled context yields its error and no findings. The result is
// sorted, so that it does not depend on the order in which packages finish.
// Packages that could not be judged are in notJudged, or have an error of their
// own in errs: the others are judged all the same.
func (r *runner) run(ctx context.Context, workers int) ([]*finding, error) {
	done := map[*packages.Package]chan struct{}{}
	for _, p := range r.l.order {
		done[p] = make(chan struct{})
	}
	slots := make(chan struct{}, max(workers, 1))
	var wg sync.WaitGroup
	finished := 0
	for _, p := range r.l.order {
		slots <- struct{}{} // dependencies come first in the order, so a slot is always freed
		wg.Go(func() {
			defer func() { <-slots }()
			defer close(done[p])
			// The facts of a dependency must be there before its importers are judged.
			for _, dep := range r.l.needs[p] {
				<-done[dep]
			}
			if ctx.Err() != nil {
				return
			}
			found, err := r.judge(p)
			r.mu.Lock()
			defer r.mu.Unlock()
			finished++
			if r.progress != nil {
				r.progress(finished, len(r.l.order), p.PkgPath)
			}
			switch {
			case errors.Is(err, errNotWhole):
				if r.l.isRoot(p) {
					r.notJudged = append(r.notJudged, p.PkgPath)
				}
			case r.l.borrowed[p]: // what it does is not known, as of any other package, when it has an error
			case err != nil:
				r.errs = append(r.errs, unjudged{p.PkgPath, err})
			case r.l.isRoot(p):
				r.findings = append(r.findings, found...)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.Sort(r.notJudged)
	slices.SortFunc(r.errs, func(a, b unjudged) int { return cmp.Compare(a.path, b.path) })
	for _, f := range r.findings {
		r.l.relativize(f)
	}
	slices.SortStableFunc(r.findings, func(a, b *finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	return r.findings, nil
}

// errNotWhole says that a package does not compile, or imports one that does
// not. The faults of the load say why.
var errNotWhole = errors.New("the package does not compile")

// judge returns what an earlier run has found in a package, where neither it nor
// anything that counts has changed since, and else what the analyzers find.
func (r *runner) judge(p *packages.Package) ([]*finding, error) {
	key, sums, ok := r.cache.key(r.l, p)
	if !ok {
		found, _, err := r.analyze(p)
		return found, err
	}
	if e := r.cache.get(key); e != nil {
		r.cache.remember(p, key)
		r.facts.restore(e.Facts)
		for name, sum := range sums {
			r.l.sums.Store(name, sum)
		}
		return e.findings(), nil
	}
	found, facts, err := r.analyze(p)
	// A file that has changed meanwhile must not be taken for the one that was judged.
	if now, _, _ := r.cache.key(r.l, p); err == nil && now == key {
		r.cache.remember(p, key)
		r.cache.put(key, newEntry(found, facts))
	}
	return found, err
}

// analyze type-checks one package and runs the analyzers on it.
// A panic of an analyzer becomes an error with its stack: one odd package must
// not take the report on all others with it. Packages of other modules are read
// for their facts alone.
func (r *runner) analyze(p *packages.Package) (found []*finding, facts []keptFact, err error) {
	r.anew.Add(1)
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("package %s: analyzer panicked: %v\n%s", p.PkgPath, v, debug.Stack())
		}
	}()
	pass, err := r.check(p)
	if err != nil {
		return nil, nil, err
	}
	pass.ExportObjectFact = r.facts.exporter(&facts)
	if r.l.borrowed[p] {
		return nil, facts, runOn(pass, retryloop.Analyzer)
	}
	for _, a := range r.analyzers {
		if err := runOn(pass, a); err != nil {
			return nil, nil, fmt.Errorf("package %s: %s: %w", p.PkgPath, a.Name, err)
		}
	}
	var all rule.Findings
	for _, a := range r.analyzers {
		all = append(all, pass.ResultOf[a].(rule.Findings)...)
	}
	for _, f := range all {
		found = append(found, r.finding(p, f))
	}
	if r.seen != nil && r.l.isRoot(p) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen(all, pass.ResultOf[retryloop.Analyzer].(*retryloop.Result).Regions)
	}
	return found, facts, nil
}

// check parses and type-checks a package from source, and returns the pass that
// each analyzer gets a copy of. It is dropped when the package has been judged.
// The language version of the module counts, since it decides on the scope of
// loop variables.
// A package without export data does not compile, or imports one that does not.
// It is checked as far as that goes, for those that import it, and judged only
// where nothing is missing.
// Report does nothing here: the rules return their findings as a result, with
// the confidence that a diagnostic has no room for. Facts about packages are not
// kept, because no analyzer exports any.
func (r *runner) check(p *packages.Package) (*analysis.Pass, error) {
	pass := &analysis.Pass{
		Fset: r.l.fset, TypesSizes: p.TypesSizes, ResultOf: map[*analysis.Analyzer]any{}, ReadFile: os.ReadFile,
		Report:            func(analysis.Diagnostic) {},
		ImportObjectFact:  r.facts.importObject,
		ImportPackageFact: func(*types.Package, analysis.Fact) bool { return false },
		ExportPackageFact: func(analysis.Fact) {},
		AllObjectFacts:    func() []analysis.ObjectFact { return nil },
		AllPackageFacts:   func() []analysis.PackageFact { return nil },
	}
	var faulty error
	for _, name := range sources(p) {
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		r.l.sums.Store(name, sumOf(src))
		f, err := parser.ParseFile(r.l.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		faulty = cmp.Or(faulty, err)
		pass.Files = append(pass.Files, f)
	}
	pass.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{},
	}
	conf := types.Config{
		Importer: view{r.l.imp, p}, Sizes: p.TypesSizes,
		Error: func(err error) { faulty = cmp.Or(faulty, err) }, // which has the check go on
	}
	if p.Module != nil {
		if p.Module.GoVersion != "" {
			conf.GoVersion = "go" + p.Module.GoVersion
		}
		pass.Module = &analysis.Module{Path: p.Module.Path, Version: p.Module.Version, GoVersion: p.Module.GoVersion}
	}
	var err error
	pass.Pkg, err = conf.Check(p.PkgPath, r.l.fset, pass.Files, pass.TypesInfo)
	faulty = cmp.Or(faulty, err)
	switch {
	case p.ExportFile == "":
		r.l.imp.provide(p.PkgPath, pass.Pkg)
		if faulty != nil || !whole(pass.TypesInfo) {
			return nil, errNotWhole
		}
	case faulty != nil:
		return nil, fmt.Errorf("package %s: %w", p.PkgPath, faulty)
	}
	return pass, nil
}

// runOn runs a and what it requires, each once. The results of all analyzers
// of the package are in one map, of which each looks at what it requires.
func runOn(pass *analysis.Pass, a *analysis.Analyzer) error {
	if _, done := pass.ResultOf[a]; done {
		return nil
	}
	for _, d := range a.Requires {
		if err := runOn(pass, d); err != nil {
			return err
		}
	}
	own := *pass
	own.Analyzer = a
	result, err := a.Run(&own)
	if err != nil {
		return err
	}
	pass.ResultOf[a] = result
	return nil
}

// allAnalyzers are those of the rules, and the one that judges directives.
// It comes last, since it needs to know which directives the others have used.
func allAnalyzers() []*analysis.Analyzer { return append(lint.Analyzers(), lint.Directives) }
