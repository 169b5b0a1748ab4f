// Package ssatest builds small packages from source in memory, for the tests of
// what reads their SSA form. It loads nothing but the export data of the
// standard library, so that a test names in its own text all that it judges.
package ssatest

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Package is one package under test.
type Package struct {
	*ssa.Package
	// Pass is what an analyzer would be given for the package. Facts that are
	// exported through it are imported from it too.
	Pass *analysis.Pass
}

// Load builds the package with the given source, which begins with its package
// clause. Imports of the standard library are real ones.
func Load(t testing.TB, src string) *Package { return LoadWith(t, nil, src) }

// LoadWith is Load with other packages, by import path. They stand in for
// libraries: tests give the few declarations that they need.
func LoadWith(t testing.TB, libraries map[string]string, src string) *Package {
	t.Helper()
	b := &builder{fset: token.NewFileSet(), sources: libraries, done: map[string]*types.Package{}}
	files, pkg, info, err := b.check("example.com/p", src)
	if err != nil {
		t.Fatal(err)
	}
	prog := ssa.NewProgram(b.fset, ssa.BuilderMode(0))
	for _, p := range pkg.Imports() {
		prog.CreatePackage(p, nil, nil, true)
	}
	built := prog.CreatePackage(pkg, files, info, false)
	built.Build()
	facts := map[types.Object]analysis.Fact{}
	return &Package{Package: built, Pass: &analysis.Pass{
		Fset: b.fset, Files: files, Pkg: pkg, TypesInfo: info, TypesSizes: types.SizesFor("gc", "amd64"),
		ResultOf:         map[*analysis.Analyzer]any{},
		Report:           func(analysis.Diagnostic) {},
		ImportObjectFact: func(types.Object, analysis.Fact) bool { return false },
		ExportObjectFact: func(o types.Object, f analysis.Fact) { facts[o] = f },
		AllObjectFacts: func() (all []analysis.ObjectFact) {
			for o, f := range facts {
				all = append(all, analysis.ObjectFact{Object: o, Fact: f})
			}
			return all
		},
	}}
}

// Run runs an analyzer on the package, and before it what it requires.
func (p *Package) Run(t testing.TB, a *analysis.Analyzer) any {
	t.Helper()
	pass := *p.Pass
	pass.Analyzer = a
	for _, need := range a.Requires {
		if _, done := pass.ResultOf[need]; !done {
			pass.ResultOf[need] = p.Run(t, need)
		}
	}
	result, err := a.Run(&pass)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Fn returns a function, or a method named "T.M".
func (p *Package) Fn(t testing.TB, name string) *ssa.Function {
	t.Helper()
	for _, obj := range p.Pass.TypesInfo.Defs {
		declared, ok := obj.(*types.Func)
		if !ok {
			continue
		}
		// A method's full name has its receiver in parentheses.
		fn := p.Prog.FuncValue(declared)
		if fn != nil && strings.NewReplacer("(*", "", "(", "", ")", "").Replace(fn.RelString(p.Pkg)) == name {
			return fn
		}
	}
	t.Fatalf("the source has no function %s", name)
	return nil
}

// Calls returns the calls in fn of functions, methods or function values of
// that name, in source order.
// An empty result is no fault; Call is for tests that need exactly one.
func Calls(fn *ssa.Function, name string) (calls []*ssa.Call) {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			c, ok := in.(*ssa.Call)
			if !ok {
				continue
			}
			com := c.Common()
			switch {
			case com.IsInvoke() && com.Method.Name() == name:
			case com.StaticCallee() != nil && com.StaticCallee().Name() == name:
			case com.Value.Name() == name:
			default:
				continue
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// Call returns the only call in fn of that name.
// It fails the test when the count differs, since the wrong call would prove
// nothing.
func Call(t testing.TB, fn *ssa.Function, name string) *ssa.Call {
	t.Helper()
	calls := Calls(fn, name)
	if len(calls) != 1 {
		t.Fatalf("%s: got %d calls of %s, want 1", fn.Name(), len(calls), name)
	}
	return calls[0]
}

// builder type-checks sources, and imports those that it was given.
// Each package is checked once, in the order in which imports ask for it.
type builder struct {
	fset    *token.FileSet
	sources map[string]string
	done    map[string]*types.Package
}

// check parses and type-checks one source.
// A fault in the source fails the test, since a snippet that does not compile
// proves nothing about the analysis.
func (b *builder) check(path, src string) ([]*ast.File, *types.Package, *types.Info, error) {
	f, err := parser.ParseFile(b.fset, path+"/p.go", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, nil, err
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{},
	}
	files := []*ast.File{f}
	// What is declared and not used is no fault of a snippet.
	var faults []error
	conf := types.Config{Importer: b, Error: func(err error) {
		if fault, ok := errors.AsType[types.Error](err); !ok || !fault.Soft {
			faults = append(faults, err)
		}
	}}
	pkg, _ := conf.Check(path, b.fset, files, info)
	return files, pkg, info, errors.Join(faults...)
}

// Import implements types.Importer.
// Libraries given to a test stand in for real ones, which the module need not
// depend on.
func (b *builder) Import(path string) (*types.Package, error) {
	src, given := b.sources[path]
	if !given {
		return standard.Import(path)
	}
	if b.done[path] == nil {
		_, pkg, _, err := b.check(path, src)
		if err != nil {
			return nil, err
		}
		b.done[path] = pkg
	}
	return b.done[path], nil
}

// library reads the standard library's export data, each package once for all
// tests of a process.
// Tests run in parallel, and the importer of the standard library is not safe
// for that by itself.
type library struct {
	mu  sync.Mutex
	imp func() types.Importer
}

// standard is shared, because reading export data takes most of the time of a
// small test.
var standard = &library{imp: sync.OnceValue(func() types.Importer {
	if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		build.Default.GOROOT = strings.TrimSpace(string(root)) // -trimpath takes it away
	}
	return importer.Default()
})}

// Import implements types.Importer.
func (l *library) Import(path string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.imp().Import(path)
}
