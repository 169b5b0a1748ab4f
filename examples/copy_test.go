package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module makes an empty module in dir, with the requirements of the examples'. What is
// not published yet is the checkout's.
func module(t *testing.T, dir, path string) {
	t.Helper()
	var mod strings.Builder
	mod.WriteString(regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(read(t, "go.mod"), "module "+path))
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+ => \./(\S*)$`).FindAllStringSubmatch(read(t, "../go.work"), -1) {
		mod.WriteString("\nreplace " + m[1] + " => " + filepath.Join(root, m[2]) + "\n")
	}
	for name, text := range map[string]string{"go.mod": mod.String(), "go.sum": read(t, "go.sum") + read(t, "../go.work.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Each folder builds in another module, where it has nothing but what is in it: no
// package of another example, and none that is internal to forbear.
func TestFoldersCanBeCopied(t *testing.T) {
	dir := t.TempDir()
	module(t, dir, "example.com/shop")
	for _, name := range names {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "vet", "./...")
	build.Dir, build.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Three examples open a store in the same way: a change of one is a change of all.
func TestStoresAreTheSame(t *testing.T) {
	for _, name := range []string{"server", "consumer"} {
		if read(t, "grpc/store.go") != read(t, name+"/store.go") {
			t.Errorf("%s/store.go is not that of grpc", name)
		}
	}
}

// The README has a line for each folder, and each program is of a size to be read.
func TestEachIsListed(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	readme, listed := read(t, "README.md"), 0
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "programs" {
			continue
		}
		listed++
		if !strings.Contains(readme, "\n| ["+e.Name()+"]("+e.Name()+"/") {
			t.Errorf("the README has no line for %s", e.Name())
		}
		if !slices.Contains(names, e.Name()) {
			continue
		}
		if !strings.Contains(readme, "`go run ./examples/"+e.Name()+"`") {
			t.Errorf("the README does not say how to run %s", e.Name())
		}
		if lines := strings.Count(read(t, e.Name()+"/main.go"), "\n"); lines > 130 {
			t.Errorf("%s/main.go has %d lines", e.Name(), lines)
		}
	}
	if listed != 8 {
		t.Errorf("%d examples, want eight", listed)
	}
}
