package workspace

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Require makes the modules in these folders require a version of each other, and
// go.work replace it. Folders beside those of go.work are benchmarks and the like.
func (w *Workspace) Require(version string, dirs []string) error {
	for _, dir := range dirs {
		name := filepath.Join(w.Root, dir, "go.mod")
		mod, err := readMod(name)
		if err != nil {
			return err
		}
		if err := raise(mod, version); err != nil {
			return err
		}
		if err := writeMod(name, mod); err != nil {
			return err
		}
	}
	work, err := readWork(w.Root)
	if err != nil {
		return err
	}
	var replaced []modfile.Replace // copies: what is dropped is emptied
	for _, r := range work.Replace {
		replaced = append(replaced, *r)
	}
	for _, r := range replaced {
		if r.Old.Version == version {
			continue
		}
		if err := cmp.Or(work.AddReplace(r.Old.Path, version, r.New.Path, ""), work.DropReplace(r.Old.Path, r.Old.Version)); err != nil {
			return err
		}
	}
	work.Cleanup()
	work.SortBlocks()
	w.Version = version
	return os.WriteFile(filepath.Join(w.Root, "go.work"), modfile.Format(work.Syntax), 0o644)
}

// raise sets the version of every requirement on a sibling.
func raise(mod *modfile.File, version string) error {
	for _, r := range mod.Require {
		if !Sibling(r.Mod.Path) {
			continue
		}
		if err := mod.AddRequire(r.Mod.Path, version); err != nil {
			return err
		}
	}
	return nil
}

func writeMod(name string, mod *modfile.File) error {
	mod.Cleanup()
	data, err := mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

// A Sum is what go.sum says of a version of a module.
type Sum struct{ Zip, GoMod string }

// WriteSums puts the sums of what the module requires of the workspace into its go.sum,
// for those of other versions.
func (w *Workspace) WriteSums(m Module, sums map[string]Sum) error {
	if len(m.Requires) == 0 {
		return nil
	}
	name := filepath.Join(w.Root, m.Dir, "go.sum")
	text, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	lines := others(string(text))
	for _, path := range m.Requires {
		sum, ok := sums[path]
		if !ok {
			return fmt.Errorf("%s requires %s, which is not released", m.Path, path)
		}
		lines = append(lines, path+" "+w.Version+" "+sum.Zip, path+" "+w.Version+"/go.mod "+sum.GoMod)
	}
	return os.WriteFile(name, []byte(sorted(lines)), 0o644)
}

// others returns the lines of a go.sum that are not about siblings.
func others(text string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(text), "\n"), func(line string) bool {
		path, _, _ := strings.Cut(line, " ")
		return line == "" || Sibling(path)
	})
}

// sorted puts lines into the go command's order.
func sorted(lines []string) string {
	sum := map[module.Version]string{}
	var keys []module.Version
	for _, line := range lines {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		key := module.Version{Path: f[0], Version: f[1]}
		if sum[key] == "" {
			keys = append(keys, key)
		}
		sum[key] = f[2]
	}
	module.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s %s %s\n", k.Path, k.Version, sum[k])
	}
	return b.String()
}
