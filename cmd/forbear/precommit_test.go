package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The hooks for pre-commit parse, install what they run, and judge what they are
// given.
func TestPreCommitHooks(t *testing.T) {
	var hooks []struct {
		ID, Name, Description, Entry, Language, Files string
		Types                                         []string
		Dependencies                                  []string `yaml:"additional_dependencies"`
		PassFilenames                                 *bool    `yaml:"pass_filenames"`
		RequireSerial                                 bool     `yaml:"require_serial"`
	}
	loader, err := yaml.NewLoader(strings.NewReader(slurp(t, "../../.pre-commit-hooks.yaml")), yaml.WithKnownFields())
	if err != nil {
		t.Fatal(err)
	}
	if err := loader.Load(&hooks); err != nil || len(hooks) != 2 {
		t.Fatalf("%d hooks, %v", len(hooks), err)
	}
	bin := t.TempDir()
	run := func(dir string, words ...string) error {
		c := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(words, " "))
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=", "GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil {
			t.Logf("%q: %v: %s", words, err, out)
		}
		return err
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"forbear.yaml": passing, "bad.forbear.yml": failing, "go.mod": "module example.com/p\n\ngo 1.26\n", "p.go": "package p\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hooks {
		if h.ID == "" || h.Name == "" || h.Description == "" || h.Language != "golang" {
			t.Errorf("hook %+v", h)
		}
		for _, d := range h.Dependencies {
			if err := run("../..", "go", "install", d); err != nil {
				t.Fatal(err)
			}
		}
		if h.PassFilenames != nil && !*h.PassFilenames {
			if err := run(dir, h.Entry); err != nil {
				t.Errorf("%s fails on clean code: %v", h.ID, err)
			}
			continue
		}
		files := regexp.MustCompile(h.Files)
		for name, want := range map[string]bool{"forbear.yaml": true, "deploy/bad.forbear.yml": true, "notforbear.yaml": false, "policy.yaml": false, "forbear.yaml.md": false} {
			if files.MatchString(name) != want {
				t.Errorf("%s: files matches %s: %v", h.ID, name, !want)
			}
		}
		if err := run(dir, h.Entry, "forbear.yaml"); err != nil {
			t.Errorf("%s fails on a good file: %v", h.ID, err)
		}
		if run(dir, h.Entry, "forbear.yaml", "bad.forbear.yml") == nil {
			t.Errorf("%s passes a bad file", h.ID)
		}
	}
}
