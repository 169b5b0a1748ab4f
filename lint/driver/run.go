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

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint"
	"github.com/forbear-go/forbear/lint/internal/retryloop"
	"github.com/forbear-go/forbear/lint/internal/rule"
)

// runner judges the packages of a load, dependencies before dependents, a few
// at a time.
// The mutex guards findings and errs, and calls of progress, which therefore
// never overlap.
type runner struct {
	l         *loaded
	analyzers []*analysis.Analyzer
	facts     factStore
	progress  func(done, total int, pkg string)
	// seen, unless nil, is given what a package that was asked for holds, one
	// package at a time.
	seen func([]*rule.Finding, []*retryloop.Region)

	mu       sync.Mutex
	findings []*finding
	errs     []error
}

// run judges all packages with the given number of workers.
// Fewer workers mean less memory: each holds the syntax and the SSA form of one
// package. A canceled context yields its error and no findings. The result is
// sorted, so that it does not depend on the order in which packages finish. At
// most twenty errors are kept.
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
			for _, dep := range p.Imports {
				if c := done[dep]; c != nil {
					<-c
				}
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
			r.findings = append(r.findings, found...)
			if err != nil && len(r.errs) < 20 {
				r.errs = append(r.errs, err)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.findings, func(a, b *finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	return r.findings, errors.Join(r.errs...)
}

// judge type-checks one package and runs the analyzers on it.
// A panic of an analyzer becomes an error with its stack: one odd package must
// not take the report on all others with it. Packages that were not asked for
// are analyzed for their facts alone.
func (r *runner) judge(p *packages.Package) (found []*finding, err error) {
	if r.l.borrowed[p] {
		r.learn(p)
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("package %s: analyzer panicked: %v\n%s", p.PkgPath, v, debug.Stack())
		}
	}()
	pass, err := r.check(p)
	if err != nil {
		return nil, err
	}
	for _, a := range r.analyzers {
		if err := analyze(pass, a); err != nil {
			return nil, fmt.Errorf("package %s: %s: %w", p.PkgPath, a.Name, err)
		}
	}
	if !r.l.isRoot(p) {
		return nil, nil
	}
	var all rule.Findings
	for _, a := range r.analyzers {
		all = append(all, pass.ResultOf[a].(rule.Findings)...)
	}
	for _, f := range all {
		found = append(found, r.finding(p, f))
	}
	if r.seen != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen(all, pass.ResultOf[retryloop.Analyzer].(*retryloop.Result).Regions)
	}
	return found, nil
}

// check parses and type-checks a package from source, and returns the pass that
// each analyzer gets a copy of. It is dropped when the package has been judged.
// The language version of the module counts, since it decides on the scope of
// loop variables.
// Report does nothing here: the rules return their findings as a result, with
// the confidence that a diagnostic has no room for. Facts about packages are not
// kept, because no analyzer exports any.
func (r *runner) check(p *packages.Package) (*analysis.Pass, error) {
	pass := &analysis.Pass{
		Fset: r.l.fset, TypesSizes: p.TypesSizes, ResultOf: map[*analysis.Analyzer]any{}, ReadFile: os.ReadFile,
		Report:            func(analysis.Diagnostic) {},
		ImportObjectFact:  r.facts.importObject,
		ExportObjectFact:  r.facts.exportObject,
		ImportPackageFact: func(*types.Package, analysis.Fact) bool { return false },
		ExportPackageFact: func(analysis.Fact) {},
		AllObjectFacts:    func() []analysis.ObjectFact { return nil },
		AllPackageFacts:   func() []analysis.PackageFact { return nil },
	}
	for _, name := range p.CompiledGoFiles {
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(r.l.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		pass.Files = append(pass.Files, f)
	}
	pass.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{},
	}
	conf := types.Config{Importer: view{r.l.imp, p}, Sizes: p.TypesSizes}
	if p.Module != nil {
		if p.Module.GoVersion != "" {
			conf.GoVersion = "go" + p.Module.GoVersion
		}
		pass.Module = &analysis.Module{Path: p.Module.Path, Version: p.Module.Version, GoVersion: p.Module.GoVersion}
	}
	var err error
	if pass.Pkg, err = conf.Check(p.PkgPath, r.l.fset, pass.Files, pass.TypesInfo); err != nil {
		return nil, fmt.Errorf("package %s does not compile: %w", p.PkgPath, err)
	}
	return pass, nil
}

// analyze runs a and what it requires, each once. The results of all analyzers
// of the package are in one map, of which each looks at what it requires.
func analyze(pass *analysis.Pass, a *analysis.Analyzer) error {
	if _, done := pass.ResultOf[a]; done {
		return nil
	}
	for _, d := range a.Requires {
		if err := analyze(pass, d); err != nil {
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
