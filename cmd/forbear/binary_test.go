package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// builds is the folder of the program that tests run, "" until one needs it.
var builds string

func TestMain(m *testing.M) {
	code := m.Run()
	if builds != "" {
		_ = os.RemoveAll(builds)
	}
	os.Exit(code)
}

// built is the program, built once for the tests that need a process. It is in a folder
// that other users may enter: one test runs it as another.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "forbear-build-")
	if err != nil {
		return "", err
	}
	builds = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "forbear")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})
