package api

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// Mark is the line in the comment of a package whose API is not settled.
const Mark = "Experimental: what this package exports may change in any version."

type pkg struct {
	*types.Package
	experimental bool
}

// load reads what the released modules export, as it is seen on Linux.
func load(ctx context.Context, w *workspace.Workspace) (map[string]pkg, error) {
	config := packages.Config{
		Context: ctx,
		Mode:    packages.NeedName,
		Dir:     w.Root,
		Env:     append(os.Environ(), "PWD="+w.Root, "GOWORK=", "GOOS=linux", "GOARCH=amd64"),
	}
	var folders, paths []string
	for _, m := range w.Released() {
		folders = append(folders, "./"+path.Join(m.Dir, "..."))
	}
	found, err := packages.Load(&config, folders...)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		if p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
			paths = append(paths, p.PkgPath)
		}
	}
	// Types are read from what the compiler has written, so that only what is exported,
	// and what that needs, is compiled.
	config.Mode |= packages.NeedFiles | packages.NeedTypes | packages.NeedExportFile | packages.NeedImports
	found, err = packages.Load(&config, paths...)
	if err != nil {
		return nil, err
	}
	all := map[string]pkg{}
	for _, p := range found {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, e)
		}
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		young, err := experimental(p.GoFiles)
		if err != nil {
			return nil, err
		}
		all[p.PkgPath] = pkg{p.Types, young}
	}
	return all, nil
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
