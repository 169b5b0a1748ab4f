package report

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ToFile writes a file in one step: a run that fails or is interrupted leaves the old
// file, or none, and never half of a report that a later step would take for a whole one.
// What is not a regular file, such as /dev/stdout or a pipe, cannot be replaced and is
// written to.
func ToFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the link stays a link
	}
	mode := fs.FileMode(0o666) // of any new file, under the umask
	info, err := os.Stat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return os.WriteFile(name, b.Bytes(), 0)
	case err == nil:
		mode = info.Mode().Perm()
	}
	// In the folder of the file that it replaces, since a rename does not cross file
	// systems. The leading dot keeps it out of globs.
	temporary := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	err = os.WriteFile(temporary, b.Bytes(), mode)
	if err == nil && info != nil {
		err = os.Chmod(temporary, mode) // the umask has no say where a file is replaced
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}
