// Package driver runs forbear's analyzers over the packages of a module and
// renders what they find: forbear lint.
//
// A run goes one way: flags.go and settings.go say what is wanted, load.go reads
// packages, judge.go runs the analyzers, finding.go turns what they return into
// findings with places and identities, report.go chooses what is shown, and
// main.go makes an exit code of it.
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
	"maps"
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
	roots  []*packages.Package        // those that were asked for
	judged map[*packages.Package]bool // the roots and what they need of their modules, as far as these compile
	faults []report.Problem           // why others do not
	made   map[string]bool            // files that cgo has made of others
	sums   sync.Map                   // of files as they were parsed, by their names
}

// loadMode asks for source and types of the packages that are named, and for
// export data of what these import.
const loadMode = packages.LoadImports | packages.NeedModule | packages.NeedTypes | packages.NeedTypesSizes |
	packages.NeedSyntax | packages.NeedTypesInfo

// load reads packages. Those that do not compile are among the roots, and the faults
// say why. tags are build tags as the go command takes them. No match at all is an
// error, so that a mistyped pattern does not pass a CI run.
func load(ctx context.Context, dir, tags string, patterns []string) (*loaded, error) {
	l := &loaded{dir: dir, judged: map[*packages.Package]bool{}, made: map[string]bool{}}
	// A stamp would have the go command run git, in a tree that may be anyone's.
	cfg := &packages.Config{Context: ctx, Mode: loadMode, Dir: dir, ParseFile: l.parse, BuildFlags: []string{"-buildvcs=false"}}
	if tags != "" {
		cfg.BuildFlags = append(cfg.BuildFlags, "-tags="+tags)
	}
	read := func(patterns []string) (all []*packages.Package, err error) {
		cfg.Fset = token.NewFileSet()
		l.fset = cfg.Fset
		all, err = packages.Load(cfg, patterns...)
		if err == nil {
			return all, nil
		}
		if _, said, ok := strings.Cut(err.Error(), "stderr: "); ok && strings.TrimSpace(said) != "" {
			return nil, errors.New(strings.TrimSpace(said)) // in the go command's own words
		}
		return nil, fmt.Errorf("list packages: %w", err)
	}
	all, err := read(patterns)
	l.roots = all
	if more := unasked(all); err == nil && len(more) > 0 {
		asked := map[string]bool{}
		for _, p := range all {
			asked[p.ID] = true
		}
		all, err = read(slices.Concat(patterns, more))
		l.roots = slices.DeleteFunc(slices.Clone(all), func(p *packages.Package) bool { return !asked[p.ID] })
	}
	if err != nil {
		return l, err
	}
	for _, p := range l.roots {
		if p.Module != nil {
			l.module = cmp.Or(l.module, p.Module.Path)
		}
	}
	l.faults = l.faultsBelow(all) // before choose changes what is imported
	l.choose(all)
	if len(l.judged) == 0 && len(l.faults) == 0 {
		return l, fmt.Errorf("no Go packages match %s", strings.Join(patterns, " "))
	}
	return l, nil
}

// parse reads a file for go/packages, and keeps its sum for the fixes.
func (l *loaded) parse(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	l.sums.Store(name, sha256.Sum256(src))
	return parser.ParseFile(fset, name, src, parser.AllErrors|parser.ParseComments|parser.SkipObjectResolution)
}

// unasked are the paths of packages that the roots need of their own modules. What a
// function there does decides what is found in the roots, so that they are read from
// source too. Beside files in place of packages the go command takes no packages.
func unasked(roots []*packages.Package) (paths []string) {
	modules := map[string]bool{}
	for _, p := range roots {
		if p.PkgPath == "command-line-arguments" {
			return nil
		}
		if p.Module != nil {
			modules[p.Module.Path] = true
		}
	}
	packages.Visit(roots, nil, func(p *packages.Package) {
		if p.Module != nil && modules[p.Module.Path] && !slices.Contains(roots, p) {
			paths = append(paths, p.PkgPath)
		}
	})
	return paths
}

// choose says which packages are judged, and leaves of their imports only those that
// are judged too, because the analyzers take facts from all imports. What lies below
// an import that is not judged takes its place: types may lead there.
func (l *loaded) choose(all []*packages.Package) {
	below := map[*packages.Package]map[string]*packages.Package{}
	packages.Visit(all, nil, func(p *packages.Package) {
		near := map[string]*packages.Package{}
		for _, dep := range p.Imports {
			if l.judged[dep] {
				near[dep.ID] = dep
			} else {
				maps.Copy(near, below[dep])
			}
		}
		below[p] = near
		if !slices.Contains(all, p) || !sound(p) {
			return
		}
		l.judged[p] = true
		p.Imports, p.IllTyped = near, false // whatever it imports
		for _, name := range p.CompiledGoFiles {
			l.made[name] = !slices.Contains(p.GoFiles, name)
		}
	})
}

// sound reports whether a package can be judged: there is source, it has no fault of
// its own, and every expression has a type. In a package that imports one with faults,
// some may have none.
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

// abs makes the name of a file absolute that a report names.
func (l *loaded) abs(name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// rel is the inverse of abs. A file outside of the folder of the run keeps its
// absolute name: a path of dots would differ from machine to machine.
func (l *loaded) rel(name string) string {
	if r, err := filepath.Rel(l.dir, name); err == nil && filepath.IsLocal(r) {
		name = r
	}
	return filepath.ToSlash(name)
}
