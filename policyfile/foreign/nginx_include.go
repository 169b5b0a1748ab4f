package foreign

import (
	"bytes"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// nginxTree is a file that no other includes, with all that it includes.
type nginxTree struct {
	name      string
	all       []directive
	upstreams map[string]*nginxUpstream
}

// nginxFile is a file of nginx, or a text that stands for one, such as that of a
// key in a ConfigMap.
type nginxFile struct {
	path     string // with slashes; that of an inner text ends in its key
	root     string // the folder of the file that includes it in the end
	all      []directive
	included bool
	read     bool
}

// nginxPath is the path by which includes find a part.
func nginxPath(p *Part) string {
	name := path.Clean(filepath.ToSlash(p.Name))
	if p.called == "" || p.called == path.Base(name) {
		return name
	}
	return path.Join(name, p.called)
}

// The bounds of includes within includes, and of their number: a file may be
// included at many places.
const (
	maxIncludeDepth = 10
	maxIncludes     = 5000
)

// nginxJoiner puts included files where they are included.
type nginxJoiner struct {
	files []*nginxFile
	names *Names
	paths map[string][]*nginxFile
	left  int // includes that may still be followed
	// wanted are includes of which no file is there.
	wanted []Include
}

// nginxTrees joins the parts: what a file includes is read in the context of the
// place that includes it, and not by itself.
func nginxTrees(parts []Part) (trees []nginxTree) {
	j := join(parts)
	tree := func(f *nginxFile) {
		f.root, f.read = path.Dir(f.path), true
		trees = append(trees, nginxTree{name: f.path, all: j.expand(f.all, f, []*nginxFile{f})})
	}
	for _, f := range j.files {
		if !f.included {
			tree(f)
		}
	}
	// What no bound above let in is not lost.
	for _, f := range j.files {
		if !f.read {
			tree(f)
		}
	}
	return trees
}

func join(parts []Part) *nginxJoiner {
	j := &nginxJoiner{left: maxIncludes}
	for i := range parts {
		files, ok := nginxFiles(&parts[i], dumped(parts[i].Text))
		if !ok {
			// A comment looks like the mark of a dump, within a block.
			files, _ = nginxFiles(&parts[i], []dump{{"", parts[i].Text, 1}}) // speaksNginx has reported its faults
		}
		j.files = append(j.files, files...)
	}
	j.paths = map[string][]*nginxFile{}
	names := make([]string, 0, len(j.files))
	for _, f := range j.files {
		j.paths[f.path] = append(j.paths[f.path], f)
		names = append(names, f.path)
	}
	j.names = NewNames(names)
	// The first pass finds the files that nginx starts with, and the second goes
	// from those alone.
	for range 2 {
		j.wanted = nil
		seen := map[*nginxFile]bool{}
		for _, f := range j.files {
			if !f.included {
				f.root = path.Dir(f.path)
				j.mark(f.all, f, seen, []*nginxFile{f})
			}
		}
	}
	return j
}

// nginxFiles parses the files of a part; ok is false when one of them is faulty.
func nginxFiles(part *Part, dumps []dump) (files []*nginxFile, ok bool) {
	for _, text := range dumps {
		p := &nginxParser{part: part, cursor: cursor{data: text.data, line: text.line, column: 1}}
		all, fault := p.block(0)
		if fault != nil {
			return nil, false
		}
		files = append(files, &nginxFile{path: path.Join(nginxPath(part), text.name), all: all})
	}
	return files, true
}

// dump is a file in the output of nginx -T, or a text that is none.
type dump struct {
	name string
	data []byte
	line int
}

// dumpMark is the line that nginx -T writes before each file.
var dumpMark = regexp.MustCompile(`(?m)^# configuration file (\S+):\r?$`)

// dumped splits the output of nginx -T into its files.
func dumped(text []byte) (files []dump) {
	marks := dumpMark.FindAllSubmatchIndex(text, -1)
	if len(marks) == 0 {
		return []dump{{"", text, 1}}
	}
	// Above the first one are at most the words of nginx -t.
	if head := text[:marks[0][0]]; bytes.ContainsAny(head, ";{") {
		files = append(files, dump{"", head, 1})
	}
	line, before := 1, 0
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		line, before = line+bytes.Count(text[before:m[0]], []byte("\n")), m[0]
		files = append(files, dump{string(text[m[2]:m[3]]), text[m[0]:end], line})
	}
	return files
}

// mark marks what f includes.
func (j *nginxJoiner) mark(block []directive, f *nginxFile, seen map[*nginxFile]bool, within []*nginxFile) {
	for _, d := range block {
		j.mark(d.block, f, seen, within)
		if d.args[0] != "include" || len(d.args) < 2 || len(within) > maxIncludeDepth {
			continue
		}
		found := j.find(f, d.args[1])
		if len(found) == 0 && !harmless(d.args[1]) {
			j.wanted = append(j.wanted, Include{Root: f.root, places: places(f, d.args[1])})
		}
		for _, in := range found {
			// A file that includes itself on the way stays one that is read.
			if slices.Contains(within, in) {
				continue
			}
			in.included, in.root = true, f.root
			if !seen[in] {
				seen[in] = true
				j.mark(in.all, in, seen, append(slices.Clone(within), in))
			}
		}
	}
}

// expand puts what the files hold in the place of the directives that include them.
// An include of which no file is there stays.
func (j *nginxJoiner) expand(block []directive, f *nginxFile, within []*nginxFile) []directive {
	all := make([]directive, 0, len(block))
	for _, d := range block {
		if d.block != nil {
			d.block = j.expand(d.block, f, within)
		}
		var found []*nginxFile
		if d.args[0] == "include" && len(d.args) > 1 && len(within) <= maxIncludeDepth && j.left > 0 {
			found = j.find(f, d.args[1])
		}
		if len(found) == 0 {
			all = append(all, d)
		}
		for _, in := range found {
			if !slices.Contains(within, in) {
				j.left--
				in.root, in.read = f.root, true
				all = append(all, j.expand(in.all, in, append(slices.Clone(within), in))...)
			}
		}
	}
	return all
}

// find returns the files that an include means, in the order of their names, as
// nginx reads them.
func (j *nginxJoiner) find(f *nginxFile, pattern string) (found []*nginxFile) {
	for _, place := range places(f, pattern) {
		for _, name := range j.names.match(place) {
			for _, in := range j.paths[name] {
				// A pattern takes in the files beside this one, and not itself or a
				// file that nginx starts with.
				if !strings.Contains(place, "*") || in != f && !slices.ContainsFunc(in.all, isMain) {
					found = append(found, in)
				}
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func isMain(d directive) bool { return d.args[0] == "http" || d.args[0] == "events" }

// places are the paths that an include may mean, the likeliest first. nginx takes
// them relative to the folder of its main file, and that of an installed file is not
// where the file lies that is checked: the folders above count too, and the
// end of an absolute path.
func places(f *nginxFile, pattern string) (all []string) {
	ends := []string{pattern}
	if rest, ok := strings.CutPrefix(pattern, "/"); ok {
		steps := strings.Split(rest, "/")
		for i := range steps {
			ends = append(ends, strings.Join(steps[i:], "/"))
		}
	}
	for _, folder := range []string{f.root, path.Dir(f.path)} {
		near := true
		for {
			for _, end := range ends {
				// A bare name is no path: it counts beside the file alone.
				switch {
				case strings.HasPrefix(end, "/"):
					all = append(all, end)
				case near || strings.Contains(end, "/"):
					all = append(all, path.Join(folder, end))
				}
			}
			above := path.Dir(folder)
			if above == folder {
				break
			}
			folder, near = above, false
		}
	}
	return all
}

// Include is a file that another includes and that is not among the parts.
type Include struct {
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
