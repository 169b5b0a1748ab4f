package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlugin builds golangci-lint with the plugin and runs it on a module: it
// reports an unkeyed retry through a helper in another package (so facts
// travel), takes its settings, a dependency's included, and honors
// //nolint:forbear with a reason.
func TestPlugin(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "golangci-lint")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := os.CopyFS(filepath.Join(dir, "module"), os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"go.mod.txt": "go.mod", "a.go.txt": "a.go", "send/send.go.txt": "send/send.go"} {
		if err := os.Rename(filepath.Join(dir, "module", from), filepath.Join(dir, "module", to)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(bin, "run", "./...")
	cmd.Dir = filepath.Join(dir, "module")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOLANGCI_LINT_CACHE="+filepath.Join(dir, "cache"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("got %v, want exit code 1 (issues)\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{"a.go:11:2", "FB1001", "FB1030", "at most 2 attempts are allowed for orders", "(forbear)"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant it to contain %q", text, want)
		}
	}
	if strings.Contains(text, "FB1054") {
		t.Errorf("got\n%s\nwant nothing from the disabled rule", text)
	}
	if strings.Contains(text, "a.go:2") {
		t.Errorf("got\n%s\nwant nothing from the suppressed function", text)
	}
}
