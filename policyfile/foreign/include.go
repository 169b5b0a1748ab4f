package foreign

import (
	"bytes"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Include is a file that another includes and that is not among the parts.
type Include struct {
	File string // that includes it
	Root string // the folder of the file that nginx starts with
	// places are patterns of paths that it may mean.
	places []string
}

// Means returns those of names that the include may mean.
func (i *Include) Means(names *Names) (found []string) {
	for _, place := range i.places {
		found = append(found, names.match(place)...)
	}
	return found
}

// Beside returns the patterns of files below the folder of the main file that the
// include may mean, relative to that folder and the likeliest first. It leaves out
// a pattern that takes in all that lies beside the main file.
func (i *Include) Beside() (patterns []string) {
	for _, place := range i.places {
		rest, ok := place, i.Root == "." && !strings.HasPrefix(place, "/")
		if i.Root != "." {
			rest, ok = strings.CutPrefix(place, strings.TrimSuffix(i.Root, "/")+"/")
		}
		if ok && !strings.HasPrefix(rest, "..") && (strings.Contains(rest, "/") || !strings.Contains(rest, "*")) && !slices.Contains(patterns, rest) {
			patterns = append(patterns, rest)
		}
	}
	return patterns
}

// Wanted returns what parts include and is not among them.
func Wanted(parts []Part) []Include {
	var own []Part
	includes := false
	for _, p := range parts {
		if p.Format == "nginx" {
			own = append(own, p)
			includes = includes || bytes.Contains(p.Text, []byte("include"))
		}
	}
	if !includes {
		return nil
	}
	return join(own).wanted
}

// Names are the names of many files, among which paths and patterns are found
// without a look at each.
type Names struct{ all []string }

// NewNames returns the names in their order, and each once.
func NewNames(names []string) *Names {
	n := &Names{}
	for _, name := range names {
		n.all = append(n.all, path.Clean(filepath.ToSlash(name)))
	}
	slices.Sort(n.all)
	n.all = slices.Compact(n.all)
	return n
}

// match returns the names that a path or a pattern means.
func (n *Names) match(pattern string) (found []string) {
	const special = `*?[\`
	if !strings.ContainsAny(pattern, special) {
		if _, ok := slices.BinarySearch(n.all, pattern); ok {
			found = []string{pattern}
		}
		return found
	}
	// Names with one beginning stand together.
	fixed := pattern[:strings.IndexAny(pattern, special)]
	first, _ := slices.BinarySearch(n.all, fixed)
	for _, name := range n.all[first:] {
		if !strings.HasPrefix(name, fixed) {
			break
		}
		if ok, err := path.Match(pattern, name); ok && err == nil {
			found = append(found, name)
		}
	}
	return found
}
