package check

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// scratch replaces files in one step: a run that fails or is interrupted leaves the
// old file, or none, and never half of a report that a later step would take for a
// whole one. The zero value is ready; it is safe for concurrent use.
type scratch struct {
	mu    sync.Mutex
	name  string // of the temporary file, or ""
	ended bool
}

// toFile writes one output to a file of its own. What is no regular file, such as
// /dev/stdout or a pipe, cannot be replaced and is written to.
func (s *scratch) toFile(name string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the link stays a link
	}
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, b.Bytes(), 0)
	}
	f, err := s.create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if info != nil {
		err = errors.Join(err, f.Chmod(info.Mode().Perm()))
	}
	// A full disk may show only when the file is closed.
	return s.finish(name, errors.Join(err, f.Close()))
}

// create makes the temporary file, in the folder of the one that it replaces, since a
// rename does not cross file systems. The leading dot keeps it out of globs.
func (s *scratch) create(name string) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, errInterrupted
	}
	temporary := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	// With the permissions of any new file, which os.CreateTemp does not give.
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		s.name = temporary
	}
	return f, err
}

// finish puts the temporary file in its place, or removes it where err says why not.
func (s *scratch) finish(name string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errInterrupted
	}
	if err == nil {
		err = os.Rename(s.name, name)
	}
	if err != nil {
		_ = os.Remove(s.name)
	}
	s.name = ""
	return err
}

// discard ends the writing for good and removes what is not finished.
func (s *scratch) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.name != "" {
		_ = os.Remove(s.name)
	}
}
