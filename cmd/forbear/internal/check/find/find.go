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
	// Ignored counts the files that an ignore file leaves out.
	Ignored int
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

// skipped are folders that hold nothing of the project's own.
var skipped = []string{".git", ".hg", ".svn", "node_modules", ".terraform", "vendor"}

// Of finds the files of operands. wanted says which files of a folder are of
// interest, by their names.
func Of(operands []string, wanted func(name string) bool) *Files {
	f := &finder{wanted: wanted, seen: map[string]int{}}
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
	seen   map[string]int // where in All
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
	matches, err := doublestar.FilepathGlob(operand, doublestar.WithFilesOnly())
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return errors.New("no file matches")
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
			if name != root && (slices.Contains(skipped, entry.Name()) || ignores.match(name, true)) {
				return fs.SkipDir
			}
			return ignores.read(filepath.Clean(name))
		}
		if !f.wanted(name) || !regular(name, entry) {
			return nil
		}
		found = true
		if ignores.match(name, false) {
			f.Ignored++
			return nil
		}
		f.add(name, true)
		return nil
	})
	if err == nil && !found {
		err = errors.New("no file in this folder is one that is checked")
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

// regular reports whether an entry is a file, or a link to one.
func regular(name string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// Read returns the contents of a file, or of standard input: at most one byte more
// than the limit.
func Read(name string, stdin io.Reader, limit int64) ([]byte, error) {
	if name == Stdin {
		if stdin == nil {
			return nil, errors.New("there is no standard input")
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
