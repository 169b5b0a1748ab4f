// Package workspace reads the modules of go.work: what they require of each other, and
// which of them are released.
//
// go.work names each released module in a replace line, with the version that the
// others require of it. A workspace needs these lines: its modules stand in for their
// own releases only where a requirement names the version that is replaced.
package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Prefix is the path of the root module, and what those of all others begin with.
const Prefix = "github.com/forbear-go/forbear"

// A Module is one line of go.work's use block.
type Module struct {
	Path     string
	Dir      string   // relative to the root, with slashes; "." for the root module
	Requires []string // modules of the workspace
	Released bool
}

// A Workspace is a checkout of the repository.
type Workspace struct {
	Root    string
	Version string   // what the modules require of each other; v0.0.0 before the first release
	Modules []Module // each behind those that it requires
}

// Read reads go.work and the go.mod files that it names.
func Read(root string) (*Workspace, error) {
	work, err := readWork(root)
	if err != nil {
		return nil, err
	}
	w := &Workspace{Root: root}
	released := map[string]bool{}
	for _, r := range work.Replace {
		if w.Version == "" {
			w.Version = r.Old.Version
		}
		if r.Old.Version == "" || r.Old.Version != w.Version {
			return nil, fmt.Errorf("go.work: %s is replaced at version %q, the others at %q", r.Old.Path, r.Old.Version, w.Version)
		}
		released[r.Old.Path] = true
	}
	for _, use := range work.Use {
		m, err := readModule(root, use.Path)
		if err != nil {
			return nil, err
		}
		m.Released = released[m.Path]
		delete(released, m.Path)
		w.Modules = append(w.Modules, m)
	}
	for path := range released {
		return nil, fmt.Errorf("go.work: %s is replaced and not used", path)
	}
	w.Modules, err = ordered(w.Modules)
	return w, err
}

// Released returns the modules that have tags, in the order in which they are tagged.
func (w *Workspace) Released() []Module {
	return slices.DeleteFunc(slices.Clone(w.Modules), func(m Module) bool { return !m.Released })
}

// Tag returns the tag of the module's version: that of a module in a folder begins
// with the folder.
func (m Module) Tag(version string) string {
	if m.Dir == "." {
		return version
	}
	return m.Dir + "/" + version
}

// Sibling reports whether a path is one of the repository's modules.
func Sibling(path string) bool {
	return path == Prefix || strings.HasPrefix(path, Prefix+"/")
}

func readWork(root string) (*modfile.WorkFile, error) {
	name := filepath.Join(root, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(name, data, nil)
}

func readModule(root, dir string) (Module, error) {
	mod, err := readMod(filepath.Join(root, dir, "go.mod"))
	if err != nil {
		return Module{}, err
	}
	if len(mod.Replace) > 0 {
		return Module{}, fmt.Errorf("%s has a replace line: the command could not be installed, and others ignore it", mod.Syntax.Name)
	}
	m := Module{Path: mod.Module.Mod.Path, Dir: filepath.ToSlash(filepath.Clean(dir))}
	for _, r := range mod.Require {
		if Sibling(r.Mod.Path) {
			m.Requires = append(m.Requires, r.Mod.Path)
		}
	}
	return m, nil
}

func readMod(name string) (*modfile.File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, data, nil)
}

// ordered puts each module behind those that it requires.
func ordered(modules []Module) ([]Module, error) {
	var sorted []Module
	placed := map[string]bool{}
	for len(sorted) < len(modules) {
		before := len(sorted)
		for _, m := range modules {
			if placed[m.Path] || slices.ContainsFunc(m.Requires, func(r string) bool { return !placed[r] }) {
				continue
			}
			sorted, placed[m.Path] = append(sorted, m), true
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("go.work: modules require each other in a circle, or one that is not used")
		}
	}
	return sorted, nil
}
