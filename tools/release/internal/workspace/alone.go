package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Alone writes into dir a go.mod and a go.sum with which the module is built without
// the workspace, and still with the checkout's siblings: its own with a replace line
// for each of them. They are for the flag -modfile.
//
// go.sum goes without the siblings' lines, since what is replaced by a folder has none.
func (w *Workspace) Alone(m Module, dir string) (name string, err error) {
	mod, err := readMod(filepath.Join(w.Root, m.Dir, "go.mod"))
	if err != nil {
		return "", err
	}
	for _, s := range w.Modules {
		if s.Path == m.Path {
			continue
		}
		if err := mod.AddReplace(s.Path, "", filepath.Join(w.Root, s.Dir), ""); err != nil {
			return "", err
		}
	}
	sums, err := os.ReadFile(filepath.Join(w.Root, m.Dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	name = filepath.Join(dir, "go.mod")
	if err := writeMod(name, mod); err != nil {
		return "", err
	}
	return name, os.WriteFile(filepath.Join(dir, "go.sum"), []byte(sorted(others(string(sums)))), 0o644)
}

// Adopt takes what the go command has made of the files that Alone wrote: without the
// replace lines, and with the sums of siblings that any module's go.sum has.
func (w *Workspace) Adopt(m Module, dir string) error {
	mod, err := readMod(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for len(mod.Replace) > 0 {
		old := mod.Replace[0].Old
		if err := mod.DropReplace(old.Path, old.Version); err != nil {
			return err
		}
		mod.Cleanup()
	}
	if err := raise(mod, w.Version); err != nil {
		return err
	}
	if err := writeMod(filepath.Join(w.Root, m.Dir, "go.mod"), mod); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines, err := w.known(mod)
	if err != nil {
		return err
	}
	lines = append(others(string(text)), lines...)
	name := filepath.Join(w.Root, m.Dir, "go.sum")
	if len(lines) == 0 {
		if err := os.Remove(name); !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	return os.WriteFile(name, []byte(sorted(lines)), 0o644)
}

// known returns the sums of what a go.mod requires of the workspace, from all go.sum
// files: none before the first release.
func (w *Workspace) known(mod *modfile.File) ([]string, error) {
	var lines []string
	for _, m := range w.Modules {
		text, err := os.ReadFile(filepath.Join(w.Root, m.Dir, "go.sum"))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) == 3 && Sibling(f[0]) && slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool {
				return r.Mod.Path == f[0] && r.Mod.Version == strings.TrimSuffix(f[1], "/go.mod")
			}) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines, nil
}
