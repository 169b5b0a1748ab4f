package find

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreList holds the patterns that were read on the way down, in the order of
// gitignore(5): the last that matches decides.
type ignoreList struct{ patterns []pattern }

// pattern is a line of an ignore file.
type pattern struct {
	glob    string // with the folder of its file
	keep    bool   // it began with "!"
	folders bool   // it ended in "/", and is about folders alone
}

// read adds the patterns of a folder's ignore file, if there is one.
func (l *ignoreList) read(folder string) error {
	name := filepath.Join(folder, IgnoreFile)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name) // a pipe has no end
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		line, p.keep = strings.CutPrefix(line, "!")
		line, p.folders = strings.CutSuffix(line, "/")
		// One with a slash is bound to its folder; another matches at any depth.
		if rest, bound := strings.CutPrefix(line, "/"); bound {
			line = rest
		} else if !strings.Contains(line, "/") {
			line = "**/" + line
		}
		p.glob = escape(filepath.ToSlash(folder)) + "/" + line
		if folder == "." {
			p.glob = line
		}
		if !doublestar.ValidatePattern(p.glob) {
			return fmt.Errorf("%s:%d: %q is not a pattern", name, number, line)
		}
		l.patterns = append(l.patterns, p)
	}
	return nil
}

// match reports whether a file or a folder is to be left out.
func (l *ignoreList) match(name string, folder bool) (ignored bool) {
	name = filepath.ToSlash(name)
	for _, p := range l.patterns {
		if p.folders && !folder {
			continue
		}
		if ok, _ := doublestar.Match(p.glob, name); ok {
			ignored = !p.keep
		}
	}
	return ignored
}

// escape makes the name of a folder stand for itself in a pattern.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(name)
}
