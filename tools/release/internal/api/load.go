// Package api keeps a record of what the released modules export, as text that a
// reviewer can read: one line for each thing, as Go keeps its own.
//
// A line that is gone or different is a change that may break who uses it; a new line
// is growth, and needs no more than to be recorded.
package api

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// Mark is the line in the comment of a package whose API is not settled.
const Mark = "Experimental: what this package exports may change in any version."

// A Record is what a module exports, in lines. It is a file of the folder api.
type Record struct {
	Module       string
	Lines        []string        // sorted
	Experimental map[string]bool // packages by their paths in the module
}

// Name returns the file of a module's record.
func Name(m workspace.Module) string {
	if m.Dir == "." {
		return "api/forbear.txt"
	}
	return "api/" + strings.ReplaceAll(m.Dir, "/", "-") + ".txt"
}

// Load reads what a module exports now. It is what is seen on Linux.
func Load(ctx context.Context, w *workspace.Workspace, m workspace.Module) (Record, error) {
	config := &packages.Config{
		Context: ctx,
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedExportFile | packages.NeedImports,
		Dir:     filepath.Join(w.Root, m.Dir),
		Env:     append(os.Environ(), "GOWORK=", "GOOS=linux", "GOARCH=amd64"),
	}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		return Record{}, err
	}
	r := Record{Module: m.Path, Experimental: map[string]bool{}}
	for _, p := range loaded {
		for _, e := range p.Errors {
			return Record{}, fmt.Errorf("%s: %w", p.PkgPath, e)
		}
		if p.Name == "main" || hidden(p.PkgPath) || len(p.GoFiles) == 0 {
			continue
		}
		if err := r.add(p, m); err != nil {
			return Record{}, err
		}
	}
	slices.Sort(r.Lines)
	r.Lines = slices.Compact(r.Lines)
	return r, nil
}

func hidden(path string) bool {
	return strings.HasSuffix(path, "/internal") || strings.Contains(path, "/internal/")
}

func (r *Record) add(p *packages.Package, m workspace.Module) error {
	name := "."
	if p.PkgPath != m.Path {
		name = strings.TrimPrefix(p.PkgPath, m.Path+"/")
	}
	young, err := experimental(p.GoFiles)
	if err != nil {
		return err
	}
	if young {
		r.Experimental[name] = true
		r.Lines = append(r.Lines, name+": experimental")
	}
	for _, line := range exported(p.Types) {
		r.Lines = append(r.Lines, name+": "+line)
	}
	return nil
}

// experimental reports whether the comment of a package has the mark.
func experimental(files []string) (bool, error) {
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return false, err
		}
		if f.Doc != nil && slices.Contains(strings.Split(f.Doc.Text(), "\n"), Mark) {
			return true, nil
		}
	}
	return false, nil
}

// exported lists what a package exports.
func exported(p *types.Package) []string {
	w := writer{pkg: p}
	for _, name := range p.Scope().Names() {
		if obj := p.Scope().Lookup(name); obj.Exported() {
			w.object(obj)
		}
	}
	return w.lines
}
