package check

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/forbear-go/forbear/policyfile/foreign"
)

// The bounds of files that are read since others include them: how often what was
// read is looked into for more, and how many there may be.
const (
	includeRounds = 10
	includeFiles  = 500
)

// include opens what files of nginx include: files among the inputs that say too
// little to be recognized by themselves, and files below the folder of the main file
// where that was named as a path.
func (t *intake) include(inputs []Input) {
	roots, known := map[string]bool{}, map[string]bool{}
	for _, in := range inputs {
		known[filepath.Clean(in.Name)] = true
		if in.Beside {
			roots[filepath.ToSlash(filepath.Dir(in.Name))] = true
		}
	}
	for range includeRounds {
		var found []Input
		wanted := foreign.Wanted(t.parts)
		if len(wanted) == 0 {
			return
		}
		left := make([]string, 0, len(t.left))
		for _, l := range t.left {
			left = append(left, l.Name)
		}
		names, meant := foreign.NewNames(left), map[string]bool{}
		for _, include := range wanted {
			for _, name := range include.Means(names) {
				meant[name] = true
			}
			if !roots[include.Root] {
				continue
			}
			for _, in := range beside(include, known) {
				if len(known)-len(inputs) < includeFiles {
					known[in.Name] = true
					found = append(found, in)
				}
			}
		}
		t.left = slices.DeleteFunc(t.left, func(l unread) bool {
			means := meant[path.Clean(filepath.ToSlash(l.Name))]
			if means {
				found = append(found, l.Input)
			}
			return means
		})
		if len(found) == 0 {
			return
		}
		for _, in := range found {
			in.Format = "nginx"
			t.open(in)
		}
	}
}

// beside reads what an include means from the folder of the main file. Nothing
// outside of that folder is opened, whatever links say.
func beside(include foreign.Include, known map[string]bool) (found []Input) {
	root, err := os.OpenRoot(filepath.FromSlash(include.Root))
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, pattern := range include.Beside() {
		names, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			continue
		}
		for _, name := range names {
			full := filepath.Join(filepath.FromSlash(include.Root), filepath.FromSlash(name))
			if known[full] || len(found) >= includeFiles {
				continue
			}
			if data, ok := readIn(root, name); ok {
				found = append(found, Input{Name: full, Data: data})
			}
		}
		if len(names) > 0 {
			break // nginx looks at one place
		}
	}
	return found
}

// readIn reads a regular file below root.
func readIn(root *os.Root, name string) ([]byte, bool) {
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, foreign.MaxSize+1))
	return data, err == nil
}
