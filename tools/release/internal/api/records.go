package api

import (
	"context"
	"os"
	"path/filepath"

	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// A Change is what has become of a module's record since it was written.
type Change struct {
	Name string // of the record's file
	Now  Record
	Difference
}

// Changes holds what the released modules export to their records. A module of nothing
// but commands has none.
func Changes(ctx context.Context, w *workspace.Workspace) ([]Change, error) {
	var all []Change
	for _, m := range w.Released() {
		now, err := Load(ctx, w, m)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(w.Root, Name(m)))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		if d := Compare(Parse(string(text)), now); !d.None() {
			all = append(all, Change{Name: Name(m), Now: now, Difference: d})
		}
	}
	return all, nil
}

// Write makes the record what the module exports now.
func (c Change) Write(root string) error {
	name := filepath.Join(root, c.Name)
	if len(c.Now.Lines) == 0 {
		return os.Remove(name)
	}
	return os.WriteFile(name, []byte(c.Now.Text()), 0o644)
}

// String names the record and lists the difference.
func (c Change) String() string { return c.Name + "\n" + c.Difference.String() }
