// Package driver runs forbear's analyzers over the packages of a module and
// renders what they find: forbear lint.
//
// It lists packages with the go command, type-checks one package at a time
// from source against the export data of its dependencies, and keeps nothing of
// it but findings and facts: memory is bounded by the largest packages, not by
// the module.
//
// Experimental: what this package exports may change in any version.
package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// loaded holds the packages to be judged, as the go command lists them.
// The importer and the file set are shared by all packages, which are judged at
// the same time.
type loaded struct {
	roots  []*packages.Package // asked for
	asked  map[*packages.Package]bool
	order  []*packages.Package // roots, what they need of the same modules, and borrowed ones; dependencies first
	dir    string              // absolute
	module string
	fset   *token.FileSet
	imp    *importer
	// borrowed are packages of other modules, among order, of which only the
	// facts are wanted.
	borrowed map[*packages.Package]bool
	// made holds the files that cgo made of others: what is found there is
	// shown where it was written, and not mended.
	made   map[string]bool
	faults []string // what does not compile, in the words of the go command
	needs  needs
	// sums are those of the files as they were judged, by their names, for the fixes.
	sums sync.Map
}

// sum is the sum of a file as it was judged, or "".
func (l *loaded) sum(name string) string {
	sum, _ := l.sums.Load(name)
	text, _ := sum.(string)
	return text
}

// listMode asks for what it takes to check one package from source at a time:
// its files, and the export data of what it imports.
// It leaves out syntax and types: the go command would load those of all
// packages at once, and memory would grow with the module.
const listMode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedExportFile | packages.NeedModule | packages.NeedTypesSizes

// load lists the packages. Those that do not compile are among them, and the
// faults say why.
// tags are build tags as the go command takes them, separated by commas. An
// empty dir is the working directory. No match at all is an error, so that a
// mistyped pattern does not pass a CI run.
func load(ctx context.Context, dir, tags string, patterns []string) (*loaded, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	imp := &importer{fset: fset, files: map[string]string{}, pkgs: map[string]*types.Package{}, checked: map[string]*types.Package{}}
	l := &loaded{dir: dir, fset: fset, imp: imp, made: map[string]bool{}}
	cfg := &packages.Config{Context: ctx, Mode: listMode, Dir: dir, Env: os.Environ()}
	if tags != "" {
		cfg.BuildFlags = []string{"-tags=" + tags}
	}
	if l.roots, err = packages.Load(cfg, patterns...); err != nil {
		return l, listing(err)
	}
	l.arrange()
	l.faults = faults(l.roots)
	if len(l.order) == 0 && len(l.faults) == 0 {
		return l, fmt.Errorf("no Go packages match %s", strings.Join(patterns, " "))
	}
	return l, nil
}

// listing is the error of a go command that lists nothing, in its own words.
func listing(err error) error {
	if _, said, ok := strings.Cut(err.Error(), "stderr: "); ok && strings.TrimSpace(said) != "" {
		return errors.New(strings.TrimSpace(said))
	}
	return fmt.Errorf("list packages: %w", err)
}

// sources are the files of a package that are judged. The go command names none
// for the compiler when something below the package does not compile.
func sources(p *packages.Package) []string {
	if len(p.CompiledGoFiles) == 0 && p.ExportFile == "" {
		return p.GoFiles
	}
	return p.CompiledGoFiles
}

// arrange puts the packages whose source is judged, or whose facts are needed,
// in dependency order: all packages of the roots' modules, and the retry helpers
// of others.
// All other packages are read from export data only.
// packages.Visit calls its last function after the imports, which gives the
// order.
func (l *loaded) arrange() {
	modules := map[string]bool{}
	l.asked = map[*packages.Package]bool{}
	for _, p := range l.roots {
		l.asked[p] = true
		if p.Module != nil {
			modules[p.Module.Path] = true
			l.module = cmp.Or(l.module, p.Module.Path)
		}
	}
	isOwn := func(p *packages.Package) bool { return l.isRoot(p) || p.Module != nil && modules[p.Module.Path] }
	var own []*packages.Package
	packages.Visit(l.roots, nil, func(p *packages.Package) {
		if isOwn(p) {
			own = append(own, p)
		}
	})
	l.borrowed = borrow(own)
	packages.Visit(l.roots, nil, func(p *packages.Package) {
		l.imp.files[p.PkgPath] = p.ExportFile
		if (isOwn(p) || l.borrowed[p]) && len(sources(p)) > 0 {
			l.order = append(l.order, p)
			for _, name := range sources(p) {
				l.made[name] = !slices.Contains(p.GoFiles, name)
			}
		}
	})
	l.needs = needsOf(l.roots, l.order)
}

// isRoot reports whether findings in p were asked for.
func (l *loaded) isRoot(p *packages.Package) bool { return l.asked[p] }

// position is where a position was written: line directives count in what cgo
// has made only.
// A line directive in a file written by hand may point anywhere, also out of the
// module.
func (l *loaded) position(p token.Pos) token.Position {
	at := l.fset.PositionFor(p, false)
	if l.made[at.Filename] {
		return l.fset.PositionFor(p, true)
	}
	return at
}

// rel makes a file name relative to the working directory, with slashes.
// A file outside of that directory keeps its absolute name: a path of dots would
// differ from machine to machine.
func (l *loaded) rel(name string) string {
	if r, err := filepath.Rel(l.dir, name); err == nil && r != ".." && !strings.HasPrefix(r, ".."+string(filepath.Separator)) {
		return filepath.ToSlash(r)
	}
	return filepath.ToSlash(name)
}

// abs is the inverse of rel.
// Findings name files relative to the directory of the run, which need not be
// the one that the process works in.
func (l *loaded) abs(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// importer reads dependencies from export data, once each. It is safe for
// concurrent use.
// Packages that are judged from source are imported by others from export data
// too; facts are keyed by name for that reason.
type importer struct {
	fset  *token.FileSet
	files map[string]string // import path -> export file

	mu   sync.Mutex
	pkgs map[string]*types.Package
	// checked holds packages without export data that were checked from source:
	// those that do not compile, and what imports them.
	checked map[string]*types.Package
}

// load returns a package by its path, which is read at its first use.
// The lock is held while a file is read: gcexportdata writes to the map of
// packages, and it may add incomplete ones for indirect imports.
func (i *importer) load(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	if p := i.pkgs[path]; p != nil && p.Complete() {
		return p, nil
	}
	name := i.files[path]
	if name == "" {
		return nil, fmt.Errorf("package %q has no export data", path)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	//lint:ignore SA1019 go list -export gives archives up to Go 1.28, and only these need the reader
	r, err := gcexportdata.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("export data of %q: %w", path, err)
	}
	return gcexportdata.Read(r, i.fset, i.pkgs, path)
}

// provide makes a package that was checked from source known to its importers.
func (i *importer) provide(path string, p *types.Package) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.checked[path] = p
}

// view is the importer as one package sees it: through its import map.
// A vendored package has another path than the import statement says.
type view struct {
	*importer
	pkg *packages.Package
}

// Import implements types.Importer.
func (v view) Import(path string) (*types.Package, error) {
	if dep := v.pkg.Imports[path]; dep != nil {
		path = dep.PkgPath
	}
	return v.load(path)
}
