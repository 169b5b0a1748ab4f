package driver

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/packages"

	"github.com/forbear-go/forbear/lint/settings"
)

// stamp is what a file looks like from outside.
type stamp struct {
	changed time.Time
	size    int64
}

// snapshot looks at the files of some folders, and at some files.
// A look at names, times and sizes needs no library and no rights, works on any
// file system, and takes milliseconds for thousands of files.
func snapshot(dirs, files []string) map[string]stamp {
	seen := map[string]stamp{}
	for _, dir := range dirs {
		dir = real(dir) // a walk does not begin at a symbolic link
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // gone since it was listed
			case d.IsDir() && name != dir && ignored(d.Name()):
				return filepath.SkipDir
			case d.IsDir() || !counts(d.Name()):
				return nil
			}
			look := d.Info
			if d.Type()&fs.ModeSymlink != 0 { // what it leads to is what is judged
				look = func() (fs.FileInfo, error) { return os.Stat(name) }
			}
			if info, err := look(); err == nil {
				seen[name] = stamp{info.ModTime(), info.Size()}
			}
			return nil
		})
	}
	for _, name := range files {
		if st, err := os.Stat(name); err == nil {
			seen[name] = stamp{st.ModTime(), st.Size()}
		}
	}
	return seen
}

// ignored reports whether the go command leaves a folder out, or no one writes
// Go there.
func ignored(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") || dir == "testdata" || dir == "node_modules"
}

// counts reports whether a file of this name decides what is found.
func counts(name string) bool {
	return strings.HasSuffix(name, ".go") || slices.Contains([]string{"go.mod", "go.sum", "go.work", "modules.txt"}, name)
}

// watched are the folders of modules, and the files beside them that decide what
// is found.
func (o *options) watched(modules []string) (dirs, files []string) {
	for _, name := range []string{
		cmp.Or(o.config, settings.Discover(o.dir, settings.FileName)), cmp.Or(o.policy, settings.Discover(o.dir, policyName)),
		settings.Discover(o.dir, "go.work"), o.signers, o.baseline,
	} {
		if name != "" {
			files = append(files, name)
		}
	}
	return modules, files
}

// moduleAbove is the folder of the module that is to be judged, before the go
// command has said so.
func (o *options) moduleAbove() []string {
	if name := settings.Discover(o.dir, "go.mod"); name != "" {
		return []string{filepath.Dir(name)}
	}
	return []string{cmp.Or(o.dir, ".")}
}

// equal reports whether two looks have seen the same.
func equal(a, b map[string]stamp) bool {
	return maps.EqualFunc(a, b, func(x, y stamp) bool { return x.size == y.size && x.changed.Equal(y.changed) })
}

// moduleDirs are the folders of the code that a user works on, of which something
// counts: those of the modules that are judged, and of modules that stand in for
// others by a replace. The module cache does not change.
func (l *loaded) moduleDirs() (dirs []string) {
	packages.Visit(l.roots, nil, func(p *packages.Package) {
		dir := ""
		switch m := p.Module; {
		case m != nil && (m.Main || m.Replace != nil && m.Replace.Version == ""):
			dir = m.Dir
		case m == nil && l.isRoot(p) && len(sources(p)) > 0:
			dir = filepath.Dir(sources(p)[0])
		}
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	})
	return dirs
}
