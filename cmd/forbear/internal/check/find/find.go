// Package find turns the operands of a gate into files: files, folders with all
// that lies below them, patterns, and "-" for standard input.
package find

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Stdin is the operand for standard input, and StdinName what it is called in
// reports.
const (
	Stdin     = "-"
	StdinName = "stdin"
)

// File is a file to judge.
type File struct {
	Name string
	// Met says that it lies in a folder that was named, and was not named itself.
	Met bool
}

// Files are those that operands stand for, each once, in the order of the operands
// and, in a folder, of their names.
type Files struct {
	All []File
	// Ignored and IgnoredFolders count what an ignore file leaves out.
	Ignored, IgnoredFolders int
	// Vendored are the folders that hold what others wrote, and are left out.
	Vendored []string
	// Passed are what lies in a folder and is no file: pipes, and links to folders
	// elsewhere, which are not followed.
	Passed []Missing
	// Missing are the operands that stand for no file, or could not be walked.
	Missing []Missing
}

// Missing is an operand with what is wrong with it.
type Missing struct {
	Name string
	Err  error
}

// IgnoreFile is the name of a file with patterns, as in .gitignore, of what lies in
// its folder and below and is not to be judged. A file that is named is judged all
// the same.
const IgnoreFile = ".forbearignore"

// skipped are folders of tools, and vendored those with copies of what others wrote:
// nothing in them is the project's own.
var (
	skipped  = []string{".git", ".hg", ".svn", ".terraform"}
	vendored = []string{"node_modules", "bower_components", "vendor", "third_party", "site-packages", "dist-packages", ".venv", "venv"}
)

// installed returns the folders that pip installed into a folder, by the records that it
// leaves beside them: a function of AWS has its packages in a folder of its own.
func installed(folder string) map[string]bool {
	found := map[string]bool{}
	records, _ := filepath.Glob(escape(folder) + "/*.dist-info/RECORD") // escaped, it is a pattern
	for _, name := range records {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if first, _, deeper := strings.Cut(line, "/"); deeper {
				found[first] = true
			}
		}
	}
	return found
}

// Of finds the files of operands. wanted says which files of a folder are of
// interest, by their names.
func Of(operands []string, wanted func(name string) bool) *Files {
	f := &finder{wanted: wanted, seen: map[string]int{}, pip: map[string]map[string]bool{}}
	for _, operand := range operands {
		if err := f.operand(operand); err != nil {
			f.Missing = append(f.Missing, Missing{operand, err})
		}
	}
	return &f.Files
}

type finder struct {
	Files
	wanted func(string) bool
	seen   map[string]int             // where in All
	pip    map[string]map[string]bool // what is known of folders, see installed
}

// installed is the function of that name, asked once for each folder.
func (f *finder) installed(folder string) map[string]bool {
	if f.pip[folder] == nil {
		f.pip[folder] = installed(folder)
	}
	return f.pip[folder]
}

func (f *finder) add(name string, met bool) {
	if i, ok := f.seen[filepath.Clean(name)]; ok {
		f.All[i].Met = f.All[i].Met && met
		return
	}
	f.seen[filepath.Clean(name)] = len(f.All)
	f.All = append(f.All, File{name, met})
}

func (f *finder) operand(operand string) error {
	if operand == Stdin {
		f.add(Stdin, false)
		return nil
	}
	info, err := os.Stat(operand)
	switch {
	case err == nil && info.IsDir():
		return f.folder(filepath.Clean(operand))
	case err == nil:
		f.add(operand, false)
		return nil
	case !strings.ContainsAny(operand, "*?[{"):
		return cause(err)
	}
	// Links may lead in circles, as those to folders below a folder.
	matches, err := doublestar.FilepathGlob(operand, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return errors.New("no file matches: check the path")
	}
	for _, name := range matches {
		f.add(name, false)
	}
	return nil
}

// folder finds the files below a folder. Links to folders are not followed, since
// they may lead in a circle.
func (f *finder) folder(root string) error {
	ignores := ignoreList{}
	found := false
	// A walk follows no link, but for the one that was named.
	if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		root += string(filepath.Separator)
	}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			// The rest of the folder is looked into all the same.
			f.Missing = append(f.Missing, Missing{name, cause(err)})
			found = true
			return fs.SkipDir
		}
		if entry.IsDir() {
			switch {
			case name == root:
			case slices.Contains(skipped, entry.Name()):
				return fs.SkipDir
			case slices.Contains(vendored, entry.Name()), f.installed(filepath.Dir(name))[entry.Name()]:
				f.Vendored = append(f.Vendored, name)
				return fs.SkipDir
			case ignores.match(name, true):
				f.IgnoredFolders++
				return fs.SkipDir
			}
			return ignores.read(filepath.Clean(name))
		}
		found = f.entry(root, name, entry, &ignores) || found
		return nil
	})
	if err == nil && !found {
		err = errors.New("this folder has no file that check reads")
	}
	return err
}

// cause is the error of a file without its name, which the report has.
func cause(err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// entry takes an entry of a folder that is a file of interest, or a link to one, and reports
// whether it is. One whose link leads nowhere cannot be read.
func (f *finder) entry(root, name string, entry fs.DirEntry, ignores *ignoreList) bool {
	mode, ignored := entry.Type(), func() bool { return ignores.match(name, false) }
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(name)
		switch {
		case err != nil && (!f.wanted(name) || ignored()):
			return false
		case err != nil:
			f.Missing = append(f.Missing, Missing{name, cause(err)})
			return true
		case info.IsDir():
			if !slices.Contains(skipped, entry.Name()) && !slices.Contains(vendored, entry.Name()) && !ignores.match(name, true) && !within(root, name) {
				f.Passed = append(f.Passed, Missing{name, errors.New("a link to a folder elsewhere is not followed: name that folder")})
			}
			return false
		}
		mode = info.Mode()
	}
	switch {
	case !f.wanted(name):
		return false
	case mode.IsRegular() && ignored():
		f.Ignored++
	case mode.IsRegular():
		f.add(name, true)
	case !ignored():
		f.Passed = append(f.Passed, Missing{name, errors.New("not a regular file")})
	}
	return mode.IsRegular()
}

// within reports whether a link leads to a folder that is walked anyway.
func within(root, link string) bool {
	var whole [2]string
	for i, name := range []string{root, link} {
		target, err := filepath.EvalSymlinks(name)
		if err != nil {
			return false
		}
		if whole[i], err = filepath.Abs(target); err != nil {
			return false
		}
	}
	rel, err := filepath.Rel(whole[0], whole[1])
	return err == nil && filepath.IsLocal(rel)
}

// Read returns the contents of a file, or of standard input: at most one byte more
// than the limit.
func Read(name string, stdin io.Reader, limit int64) ([]byte, error) {
	if name == Stdin {
		if stdin == nil {
			return nil, errors.New("standard input is closed")
		}
		return io.ReadAll(io.LimitReader(stdin, limit+1))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, cause(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	return data, cause(err)
}
