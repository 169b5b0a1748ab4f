package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// toFile writes a file as a whole or not at all: a report that is cut off must not
// pass for one, and neither must a source file.
// It is written beside the old one and renamed, so that one who reads or a run that
// is ended sees the old or the new. A link stays a link, and the permissions stay.
// What is no regular file, such as /dev/stdout or a pipe, is written to.
func toFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	name = real(name)
	old, err := os.Stat(name)
	if err == nil && !old.Mode().IsRegular() {
		return os.WriteFile(name, b.Bytes(), 0)
	}
	// The name is of no Go file, and has the permissions of any new file, which
	// os.CreateTemp does not give.
	aside := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if old != nil {
		err = errors.Join(err, f.Chmod(old.Mode().Perm()))
	}
	// A full disk may show only when the file is closed.
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(aside, name)
	}
	if err != nil {
		_ = os.Remove(aside)
	}
	return err
}
