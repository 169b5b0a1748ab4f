package mend

import (
	"bytes"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"strconv"

	"golang.org/x/tools/go/analysis"

	"github.com/forbear-go/forbear/lint/internal/rule"
)

// site is the file in which something is mended.
type site struct {
	*rule.Pass
	file *ast.File
}

func siteOf(p *rule.Pass, pos token.Pos) site { return site{p, p.FileAt(pos)} }

// FileVersion is the version of Go that the file is written for, or "".
func (s site) FileVersion() string {
	if v := s.TypesInfo.FileVersions[s.file]; v != "" {
		return v
	}
	return s.Pkg.GoVersion()
}

// text is the code of a node.
func (s site) text(n ast.Node) string {
	var b bytes.Buffer
	if printer.Fprint(&b, s.Fset, n) != nil {
		return ""
	}
	return b.String()
}

// rand is the name by which the file may know math/rand/v2, and the edit that imports
// it; ok is false where the name is taken.
func (s site) rand() (name string, add []analysis.TextEdit, ok bool) {
	var last *ast.ImportSpec
	for _, imp := range s.file.Imports {
		last = imp
		if path, _ := strconv.Unquote(imp.Path.Value); path == randPath {
			if imp.Name == nil {
				return "rand", nil, true
			}
			return imp.Name.Name, nil, imp.Name.Name != "_" && imp.Name.Name != "."
		}
	}
	if last == nil || s.Pkg.Scope().Lookup("rand") != nil || s.taken("rand") {
		return "", nil, false
	}
	for _, d := range s.file.Decls {
		g, isGen := d.(*ast.GenDecl)
		if !isGen || g.Tok != token.IMPORT {
			continue
		}
		if !g.Lparen.IsValid() {
			return "rand", []analysis.TextEdit{{Pos: g.Pos(), End: g.Pos(), NewText: []byte("import \"" + randPath + "\"\n")}}, true
		}
		// In the order of the paths, as gofmt has it within a group.
		at := g.Specs[0]
		for _, spec := range g.Specs {
			if path, _ := strconv.Unquote(spec.(*ast.ImportSpec).Path.Value); path < randPath && s.Fset.Position(spec.Pos()).Line-s.Fset.Position(at.Pos()).Line <= 1 {
				at = spec
			}
		}
		path, _ := strconv.Unquote(at.(*ast.ImportSpec).Path.Value)
		if path < randPath {
			return "rand", []analysis.TextEdit{{Pos: at.End(), End: at.End(), NewText: []byte("\n\t\"" + randPath + "\"")}}, true
		}
		return "rand", []analysis.TextEdit{{Pos: at.Pos(), End: at.Pos(), NewText: []byte("\"" + randPath + "\"\n\t")}}, true
	}
	return "", nil, false
}

// taken reports whether a name means something in the file.
func (s site) taken(name string) bool {
	is := false
	ast.Inspect(s.file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		is = is || ok && id.Name == name
		return !is
	})
	return is
}

// statementOf returns the statement of a loop when it stands in a block, its label
// included, and the scope of that block.
func (s site) statementOf(loop ast.Node) (ast.Stmt, *types.Scope) {
	var found ast.Stmt
	ast.Inspect(s.file, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		}
		for _, st := range list {
			inner := st
			if l, ok := st.(*ast.LabeledStmt); ok {
				inner = l.Stmt
			}
			if inner == loop {
				found = st
			}
		}
		return found == nil
	})
	if found == nil {
		return nil, nil
	}
	return found, s.Pkg.Scope().Innermost(found.Pos() - 1)
}
