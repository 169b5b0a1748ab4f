package proxy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
)

// forget removes a version of a module from a module cache: its tree, what was fetched
// of it, its line in the list of versions, and folders that are empty then.
func forget(cache string, m module.Version) error {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	tree := filepath.Join(cache, path+"@"+m.Version)
	if err := removeAll(tree); err != nil {
		return err
	}
	fetched := filepath.Join(cache, "cache", "download", path, "@v")
	files, err := filepath.Glob(filepath.Join(fetched, m.Version+".*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	if err := unlist(filepath.Join(fetched, "list"), m.Version); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(tree), fetched} {
		for dir != cache && os.Remove(dir) == nil {
			dir = filepath.Dir(dir)
		}
	}
	return nil
}

// unlist removes a version from a list, and the list with its last version.
func unlist(name, version string) error {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var left strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) != version {
			left.WriteString(line)
		}
	}
	if left.Len() == 0 {
		return os.Remove(name)
	}
	return os.WriteFile(name, []byte(left.String()), 0o644)
}

// removeAll removes a tree of the module cache, whose folders are not writable.
func removeAll(root string) error {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.RemoveAll(root)
}
