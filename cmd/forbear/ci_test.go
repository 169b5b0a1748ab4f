package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The policy files that the examples judge: one passes the gate, one has a
// finding, and one cannot be read.
const (
	passing = "service: a\ndependencies:\n  b: {owner: a, strict: true, methods: [GET]}\n"
	failing = "service: a\ndependencies:\n  b: {owner: a, strict: true, budget: none}\n"
	broken  = "service: a\ndependences: {}\n"
)

// steps returns the shell steps of a CI example, as they stand.
func steps(t *testing.T, name string) (found []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci", name))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
		Policy struct {
			Script []string `yaml:"script"`
		} `yaml:"retry-policy"`
		Repos []struct {
			Hooks []struct {
				Entry string `yaml:"entry"`
			} `yaml:"hooks"`
		} `yaml:"repos"`
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, job := range doc.Jobs {
		for _, s := range job.Steps {
			if s.Run != "" {
				found = append(found, s.Run)
			}
		}
	}
	found = append(found, doc.Policy.Script...)
	for _, repo := range doc.Repos {
		for _, h := range repo.Hooks {
			found = append(found, h.Entry+" policy.yaml") // pre-commit adds the files
		}
	}
	return found
}

// The shell steps of the CI examples run as they stand: they pass a good policy
// and fail a bad one. Only go install is another: what it would fetch is built
// from this tree.
func TestCIExamples(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "forbear"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	shim := "#!/bin/sh\n[ \"$1\" = install ] && [ \"$2\" = github.com/forbear-go/forbear/cmd/forbear@latest ]\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(shim), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, count := range map[string]int{"github.yml": 3, "gitlab.yml": 2, "pre-commit-config.yaml": 1} {
		all := steps(t, name)
		if len(all) != count {
			t.Errorf("%s has %d shell steps, want %d", name, len(all), count)
		}
		for _, policy := range []struct {
			text string
			pass bool
		}{{passing, true}, {failing, false}, {broken, false}} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var failed strings.Builder
			for _, step := range all {
				c := exec.CommandContext(t.Context(), "sh", "-e", "-c", step)
				c.Dir = dir
				c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"))
				if out, err := c.CombinedOutput(); err != nil {
					failed.WriteString(step + ": " + strings.TrimSpace(string(out)) + "\n")
				}
			}
			if passed := failed.String() == ""; passed != policy.pass {
				t.Errorf("%s: passed is %v, want %v: %s", name, passed, policy.pass, failed.String())
			}
		}
	}
}
