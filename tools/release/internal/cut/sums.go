package cut

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// writeSums completes the go.sum files: each needs the sums of the modules that it
// requires, and has a part in the sum of its own. All tags can still be of one commit,
// since the zip of a module is of its folder alone.
func writeSums(ctx context.Context, w *workspace.Workspace) (map[string]workspace.Sum, error) {
	sums := map[string]workspace.Sum{}
	for _, m := range w.Modules {
		if err := w.WriteSums(m, sums); err != nil {
			return nil, err
		}
		if !m.Released {
			continue
		}
		sum, err := sumOf(ctx, w, m)
		if err != nil {
			return nil, err
		}
		sums[m.Path] = sum
	}
	return sums, nil
}

// sumOf computes the sum of a module as it would be committed now.
func sumOf(ctx context.Context, w *workspace.Workspace, m workspace.Module) (workspace.Sum, error) {
	if _, err := run.Git(ctx, w.Root, "add", "--all"); err != nil {
		return workspace.Sum{}, err
	}
	tree, err := run.Git(ctx, w.Root, "write-tree")
	if err != nil {
		return workspace.Sum{}, err
	}
	file, err := os.CreateTemp("", "forbear-*.zip")
	if err != nil {
		return workspace.Sum{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	folder := m.Dir
	if folder == "." {
		folder = ""
	}
	if err := zip.CreateFromVCS(file, module.Version{Path: m.Path, Version: w.Version}, w.Root, tree, folder); err != nil {
		return workspace.Sum{}, err
	}
	if err := file.Close(); err != nil {
		return workspace.Sum{}, err
	}
	sum, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
	if err != nil {
		return workspace.Sum{}, err
	}
	gomod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(filepath.Join(w.Root, m.Dir, "go.mod"))
	})
	return workspace.Sum{Zip: sum, GoMod: gomod}, err
}
