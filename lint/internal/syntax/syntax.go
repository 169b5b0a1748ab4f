// Package syntax answers what those who write code into a file ask of it: what
// stands around a place, how an expression is spelled, by which name a package is
// known.
package syntax

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Path returns the nodes around pos, outermost first.
func Path(f *ast.File, pos token.Pos) []ast.Node {
	var path []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || pos < n.Pos() || pos >= n.End() {
			return false
		}
		path = append(path, n)
		return true
	})
	return path
}

// Text spells a node as gofmt has it; "" when a comment lies in it, which would
// be lost.
func Text(fset *token.FileSet, f *ast.File, n ast.Node) string {
	inside := func(g *ast.CommentGroup) bool { return g.Pos() < n.End() && n.Pos() < g.End() }
	var b bytes.Buffer
	if slices.ContainsFunc(f.Comments, inside) || format.Node(&b, fset, n) != nil {
		return ""
	}
	return b.String()
}

// Imported is the name by which a file knows a package, or "". Dot and blank
// imports give none. The package's own name may differ from the last element of
// its path.
func Imported(info *types.Info, f *ast.File, path string) string {
	for _, spec := range f.Imports {
		if strings.Trim(spec.Path.Value, "`\"") != path {
			continue
		}
		if spec.Name == nil {
			if obj, ok := info.Implicits[spec].(*types.PkgName); ok {
				return obj.Name()
			}
			return path[strings.LastIndex(path, "/")+1:]
		}
		if spec.Name.Name != "." && spec.Name.Name != "_" {
			return spec.Name.Name
		}
	}
	return ""
}

// Pure reports whether an expression may be computed once more or less: it calls
// nothing, and receives nothing.
func Pure(info *types.Info, e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			ok = ok && info.Types[n.Fun].IsType()
		case *ast.FuncLit:
			ok = false
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		}
		return ok
	})
	return ok
}
