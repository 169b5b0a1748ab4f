// Package driver runs forbear's analyzers over the packages of a module and
// renders what they find: forbear lint.
//
// A run goes one way: flags.go and settings.go say what is wanted, load.go reads
// packages, judge.go runs the analyzers, finding.go turns what they return into
// findings with places and identities, report.go chooses what is shown, and
// main.go turns that into an exit code.
//
// Experimental: what this package exports may change in any version.
package driver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/internal/report"
)

// loaded holds the packages of a run.
type loaded struct {
	dir    string // absolute; findings name files from here
	module string
	fset   *token.FileSet
	roots  []*packages.Package // those that were asked for
	judged []*packages.Package // the roots and what they need of their modules, as far as these compile
	faults []report.Problem    // why others do not
	// made holds the files that cgo made of others. What is found there is shown
	// where it was written, and not fixed.
	made map[string]bool
	sums sync.Map // of files as they were parsed, by their names
}

// loadMode asks for source and types of the packages that are named, and for
// export data of what these import.
const loadMode = packages.LoadImports | packages.NeedModule | packages.NeedTypes | packages.NeedTypesSizes |
	packages.NeedSyntax | packages.NeedTypesInfo

// load reads the packages. Those that do not compile are among the roots, and the
// faults say why. tags are build tags as the go command takes them. No match at
// all is an error, so that a mistyped pattern does not pass a CI run.
func load(ctx context.Context, dir, tags string, patterns []string) (*loaded, error) {
	l := &loaded{made: map[string]bool{}}
	var err error
	if l.dir, err = filepath.Abs(dir); err != nil {
		return l, err
	}
	read := func(patterns []string) (list []*packages.Package, err error) {
		l.fset = token.NewFileSet()
		// A stamp would have the go command run git in a tree that no one has judged yet.
		flags := []string{"-buildvcs=false"}
		if tags != "" {
			flags = append(flags, "-tags="+tags)
		}
		return packages.Load(&packages.Config{Context: ctx, Mode: loadMode, Dir: l.dir, Fset: l.fset, ParseFile: l.parse, BuildFlags: flags}, patterns...)
	}
	all, err := read(patterns)
	if err != nil {
		return l, listing(err)
	}
	l.roots = all
	if more := l.unasked(); len(more) > 0 {
		asked := l.isRoot
		if all, err = read(append(slices.Clone(patterns), more...)); err != nil {
			return l, listing(err)
		}
		l.roots = slices.DeleteFunc(slices.Clone(all), func(p *packages.Package) bool { return !asked(p) })
	}
	l.faults = l.faultsBelow(all) // before choose changes what is imported
	l.choose(all)
	if len(l.judged) == 0 && len(l.faults) == 0 {
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

// parse reads a file for go/packages, and keeps its sum for the fixes.
func (l *loaded) parse(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	l.sums.Store(name, sha256.Sum256(src))
	return parser.ParseFile(fset, name, src, parser.AllErrors|parser.ParseComments|parser.SkipObjectResolution)
}

// isRoot reports whether findings in p were asked for.
func (l *loaded) isRoot(p *packages.Package) bool {
	return slices.ContainsFunc(l.roots, func(r *packages.Package) bool { return r.ID == p.ID })
}

// unasked are the paths of packages that the roots need of their own modules.
// What a function there does decides what is found in the roots, so that they are
// read from source too. Beside files in place of packages the go command takes
// no packages.
func (l *loaded) unasked() (paths []string) {
	modules := map[string]bool{}
	for _, p := range l.roots {
		if p.PkgPath == "command-line-arguments" {
			return nil
		}
		if p.Module != nil {
			modules[p.Module.Path] = true
		}
	}
	packages.Visit(l.roots, nil, func(p *packages.Package) {
		if p.Module != nil && modules[p.Module.Path] && !l.isRoot(p) {
			paths = append(paths, p.PkgPath)
		}
	})
	return paths
}

// choose says which packages are judged, and leaves of their imports only those
// that are judged too, because the analyzers take facts from all imports. What
// lies below an import that is not judged takes its place: types may lead there.
func (l *loaded) choose(all []*packages.Package) {
	given := map[*packages.Package]bool{}
	for _, p := range all {
		given[p] = true
		if p.Module != nil {
			l.module = cmp.Or(l.module, p.Module.Path)
		}
	}
	below := map[*packages.Package]map[string]*packages.Package{}
	judged := map[*packages.Package]bool{}
	packages.Visit(all, nil, func(p *packages.Package) {
		near := map[string]*packages.Package{}
		for _, dep := range p.Imports {
			if judged[dep] {
				near[dep.ID] = dep
				continue
			}
			for id, q := range below[dep] {
				near[id] = q
			}
		}
		below[p] = near
		if !given[p] || !sound(p) {
			return
		}
		judged[p] = true
		l.judged = append(l.judged, p)
		// It is sound whatever it imports.
		p.Imports, p.IllTyped = near, false
		for _, name := range p.CompiledGoFiles {
			l.made[name] = !slices.Contains(p.GoFiles, name)
		}
	})
}

// sound reports whether a package can be judged: there is source, it has no fault
// of its own, and every expression has a type. In a package that imports one with
// faults, some may have none.
func sound(p *packages.Package) bool {
	if len(p.Syntax) == 0 || len(p.TypeErrors) > 0 || slices.ContainsFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.ParseError }) {
		return false
	}
	for _, tv := range p.TypesInfo.Types {
		if tv.Type == types.Typ[types.Invalid] && !tv.IsBuiltin() {
			return false
		}
	}
	return true
}

// position is where a position was written. Line directives count in what cgo
// has made only: in a file written by hand one may point anywhere, also out of
// the module.
func (l *loaded) position(p token.Pos) token.Position {
	at := l.fset.PositionFor(p, false)
	if l.made[at.Filename] {
		return l.fset.PositionFor(p, true)
	}
	return at
}

// rel makes a file's name relative to the folder of the run, with slashes. A file
// outside keeps its absolute name: a path of dots would differ from machine to
// machine.
func (l *loaded) rel(name string) string {
	if r, err := filepath.Rel(l.dir, name); err == nil && filepath.IsLocal(r) {
		name = r
	}
	return filepath.ToSlash(name)
}

// abs is the inverse of rel.
func (l *loaded) abs(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}
