package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// programName is the name under which this test binary is the program.
const programName = "forbear"

// builds is the folder of the program that tests run, "" until one needs it.
var builds string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		main()
		return
	}
	// A raced program ends at once with its first race, and otherwise does not wait for one
	// more at its end.
	_ = os.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0")
	code := redistest.Main(func() int { return pgtest.Main(m, nil) })
	if builds != "" {
		_ = os.RemoveAll(builds)
	}
	os.Exit(code)
}

// built is the program for the tests that need a process: this test binary under the
// program's name. So nothing is linked for them, and the race detector sees what they do.
// The folder is one that other users may enter: one test runs the program as another.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "forbear-build-")
	if err != nil {
		return "", err
	}
	builds = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, programName)
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if os.Link(self, path) == nil {
		return path, nil
	}
	if err := copyFile(path, self); err != nil {
		return "", fmt.Errorf("copy the test binary: %w", err)
	}
	return path, nil
})

// copyFile makes a program like another, which a link cannot: it is on another disk.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
