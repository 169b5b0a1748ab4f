package mend

import (
	"go/ast"
	"go/token"
	"go/types"
	"go/version"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/syntax"
)

// source is a package of random numbers as a file knows it.
type source struct {
	name string // before the dot
	v2   bool
	add  string // the import specification to add, or ""
}

// atLeast reports whether the file may use what a version of Go has. A file
// without a version is one of a module without a go line, which is old.
func (s site) atLeast(v string) bool {
	have := s.TypesInfo.FileVersions[s.file]
	if have == "" {
		have = s.Pkg.GoVersion()
	}
	return version.IsValid(have) && version.Compare(have, v) >= 0
}

// source finds the random numbers of a file: those that it imports already, or
// an import that collides with nothing. Before Go 1.20 every process drew the
// same numbers unless it took care, which is no jitter, so that there is none.
// Each place in which it is to be used is looked at, since a variable may hide
// the package.
func (s site) source(places []token.Pos) *source {
	if !s.atLeast("go1.20") {
		return nil
	}
	for _, path := range []string{"math/rand/v2", "math/rand"} {
		v2 := path == "math/rand/v2"
		name := s.imported(path)
		if name == "" || v2 && !s.atLeast("go1.22") {
			continue
		}
		hidden := func(pos token.Pos) bool {
			_, isPkg := s.resolves(name, pos).(*types.PkgName)
			return !isPkg
		}
		if slices.ContainsFunc(places, hidden) {
			return nil
		}
		return &source{name: name, v2: v2}
	}
	src := &source{v2: s.atLeast("go1.22"), add: `"math/rand"`}
	if src.v2 {
		src.add = `"math/rand/v2"`
	}
	for _, name := range []string{"rand", "mathrand"} {
		taken := func(pos token.Pos) bool { return s.resolves(name, pos) != nil }
		// The name must be free in the whole file, for its other uses, and wherever
		// the fix names it.
		if taken(s.file.End()-1) || s.Pkg.Scope().Lookup(name) != nil || s.fileName(name) || slices.ContainsFunc(places, taken) {
			continue
		}
		if src.name = name; name != "rand" {
			src.add = name + " " + src.add
		}
		return src
	}
	return nil
}

// imports lists the specification to add, if there is one.
func (r *source) imports() []string {
	if r.add == "" {
		return nil
	}
	return []string{r.add}
}

// imported is the name by which the file knows a package, or "".
func (s site) imported(path string) string { return syntax.Imported(s.TypesInfo, s.file, path) }

// fileName reports whether an import of the file has the name.
func (s site) fileName(name string) bool {
	return slices.ContainsFunc(s.file.Imports, func(spec *ast.ImportSpec) bool {
		if spec.Name != nil {
			return spec.Name.Name == name
		}
		obj, _ := s.TypesInfo.Implicits[spec].(*types.PkgName)
		return obj != nil && obj.Name() == name
	})
}

// importing is the edit that adds imports of the standard library where goimports
// would put them: among those of the standard library, by their paths.
func (s site) importing(specs []string) analysis.TextEdit {
	slices.SortFunc(specs, func(a, b string) int { return strings.Compare(importPath(a), importPath(b)) })
	insert := func(pos token.Pos, text string) analysis.TextEdit {
		return analysis.TextEdit{Pos: pos, End: pos, NewText: []byte(text)}
	}
	lines := strings.Join(specs, "\n\t")
	decl := s.importDecl()
	switch {
	case decl == nil:
		return insert(s.file.Name.End(), "\n\nimport (\n\t"+lines+"\n)")
	case !decl.Lparen.IsValid():
		// import "time" gets its parentheses, and its neighbors.
		only := decl.Specs[0].(*ast.ImportSpec)
		at := only.Pos()
		if importPath(specs[0]) < importPath(only.Path.Value) {
			return analysis.TextEdit{Pos: at, End: only.End(), NewText: []byte("(\n\t" + lines + "\n\t" + specText(only) + "\n)")}
		}
		return analysis.TextEdit{Pos: at, End: only.End(), NewText: []byte("(\n\t" + specText(only) + "\n\t" + lines + "\n)")}
	}
	group := s.stdGroup(decl)
	if len(group) == 0 {
		return insert(decl.Lparen+1, "\n\t"+lines+"\n")
	}
	for _, spec := range group {
		if importPath(spec.Path.Value) > importPath(specs[0]) {
			at := spec.Pos()
			if spec.Doc != nil {
				at = spec.Doc.Pos()
			}
			return insert(at, lines+"\n\t")
		}
	}
	last := group[len(group)-1]
	at := last.End()
	if last.Comment != nil {
		at = last.Comment.End()
	}
	return insert(at, "\n\t"+lines)
}

// importDecl is the declaration to which an import is added: the first with
// parentheses, or the first. That of "C" belongs to cgo alone.
func (s site) importDecl() *ast.GenDecl {
	var first *ast.GenDecl
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			break
		}
		if len(g.Specs) == 0 || importPath(g.Specs[0].(*ast.ImportSpec).Path.Value) == "C" {
			continue
		}
		if g.Lparen.IsValid() {
			return g
		}
		if first == nil {
			first = g
		}
	}
	return first
}

// stdGroup is the first group of lines that imports from the standard library.
// An empty line ends a group.
func (s site) stdGroup(decl *ast.GenDecl) (group []*ast.ImportSpec) {
	line := 0
	for _, d := range decl.Specs {
		spec := d.(*ast.ImportSpec)
		from := spec.Pos()
		if spec.Doc != nil {
			from = spec.Doc.Pos()
		}
		std := !strings.Contains(strings.Split(importPath(spec.Path.Value), "/")[0], ".")
		if len(group) > 0 && (!std || s.Fset.Position(from).Line > line+1) {
			return group
		}
		if std {
			group = append(group, spec)
		}
		line = s.Fset.Position(spec.End()).Line
	}
	return group
}

// importPath is the path of an import specification, with or without a name.
func importPath(spec string) string {
	return strings.Trim(spec[strings.LastIndex(spec, " ")+1:], "`\"")
}

// specText spells an import specification.
func specText(spec *ast.ImportSpec) string {
	if spec.Name == nil {
		return spec.Path.Value
	}
	return spec.Name.Name + " " + spec.Path.Value
}
