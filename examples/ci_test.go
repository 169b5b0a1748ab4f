package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// The charges go well by the policy, after one retry.
func TestCI(t *testing.T) {
	has(t, example(t, "ci").ends(t), map[string]int{"is paid": 6, "payments: 503": 1, "WARN retry": 1})
}

// steps returns the shell steps of a CI file as they stand, each as often as it is run.
func steps(t *testing.T, name string) (found []string) {
	t.Helper()
	var doc struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
		Forbear struct {
			Before []string `yaml:"before_script"`
		} `yaml:".forbear"`
		Lint  struct{ Script []string } `yaml:"retry-lint"`
		Check struct{ Script []string } `yaml:"retry-policy"`
		Repos []struct {
			Hooks []struct{ Entry string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, name)), &doc); err != nil {
		t.Fatal(err)
	}
	for _, job := range doc.Jobs {
		for _, s := range job.Steps {
			if s.Run != "" {
				found = append(found, s.Run)
			}
		}
	}
	found = append(found, doc.Forbear.Before...)
	found = append(found, doc.Lint.Script...)
	found = append(found, doc.Check.Script...)
	for _, repo := range doc.Repos {
		for _, h := range repo.Hooks {
			found = append(found, h.Entry+" policy.yaml") // pre-commit adds the files
		}
	}
	return found
}

// The steps of the CI files pass the example where it is a repository of its own, and
// each but the installation fails what is in the folder before. What go install would
// fetch is built from this tree.
func TestCIFiles(t *testing.T) {
	dir := t.TempDir()
	after, before := filepath.Join(dir, "after"), filepath.Join(dir, "before")
	if err := os.CopyFS(after, os.DirFS("ci")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(after, "before"), before); err != nil {
		t.Fatal(err)
	}
	module(t, after, "example.com/shop")
	for name, want := range map[string]int{"ci/github.yml": 4, "ci/gitlab.yml": 3, "ci/pre-commit-config.yaml": 1} {
		all := steps(t, name)
		if len(all) != want {
			t.Errorf("%s has %d steps, want %d: %q", name, len(all), want, all)
		}
		for _, step := range all {
			if out, err := shell(t, after, step); err != nil {
				t.Errorf("%s: %s\n%v\n%s", name, step, err, out)
			}
			if out, err := shell(t, before, step); (err == nil) != strings.HasPrefix(step, "go install ") {
				t.Errorf("%s: what is in before: %s\n%v\n%s", name, step, err, out)
			}
		}
	}
	if summary := read(t, filepath.Join(after, "summary")); !strings.Contains(summary, "payments") {
		t.Errorf("the summary on GitHub is %q", summary)
	}
}

// A file that cannot be read fails the gate, too.
func TestCIFilesRefuseABrokenPolicy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte("service: a\ndependences: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ci/github.yml", "ci/gitlab.yml", "ci/pre-commit-config.yaml"} {
		checks := 0
		for _, step := range steps(t, name) {
			if !strings.HasPrefix(step, "forbear check") {
				continue
			}
			checks++
			if out, err := shell(t, dir, step); err == nil {
				t.Errorf("%s: %s passes\n%s", name, step, out)
			}
		}
		if checks == 0 {
			t.Errorf("%s checks nothing", name)
		}
	}
}

// The README shows what lint and check say of the folder before.
func TestCIShowsFindings(t *testing.T) {
	var said strings.Builder
	for _, args := range [][]string{{"lint"}, {"check", "policy.yaml"}} {
		cmd := exec.CommandContext(t.Context(), command(t), args...)
		cmd.Dir, cmd.Env = "ci/before", append(os.Environ(), "GOFLAGS=-trimpath")
		out, _ := cmd.Output()
		if cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("forbear %s ended with %d, want 1\n%s", args, cmd.ProcessState.ExitCode(), out)
		}
		said.WriteString(string(out))
	}
	shown := regexp.MustCompile(`(?m)^((?:main\.go|policy\.yaml):\d+.*)$`).FindAllStringSubmatch(read(t, "ci/README.md"), -1)
	if len(shown) != 7 {
		t.Errorf("the README shows %d findings", len(shown))
	}
	for _, m := range shown {
		if !strings.Contains(said.String(), m[1]+"\n") {
			t.Errorf("the README shows %q, and they said\n%s", m[1], said.String())
		}
	}
}

// shell runs a step in a folder, with the command of this tree on the PATH.
func shell(t *testing.T, dir, step string) ([]byte, error) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	shim := filepath.Join(filepath.Dir(command(t)), "go")
	text := "#!/bin/sh\n[ \"$1 $2\" != 'install github.com/forbear-go/forbear/cmd/forbear@latest' ] || exit 0\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(shim, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", step)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(shim)+":"+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary"), "GOWORK=off", "GOFLAGS=-mod=mod -trimpath")
	return cmd.CombinedOutput()
}

// The commands of the guide to waivers make one that counts. Its dates are moved to
// today, since a waiver ends.
func TestWaiversOfTheGuide(t *testing.T) {
	page := read(t, "../docs/guides/check-waivers.md")
	_, page, _ = strings.Cut(page, "\n## A waiver\n")
	policy := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)
	session := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(page)
	if policy == nil || session == nil {
		t.Fatal("the guide has no policy, or no commands")
	}
	const day = "2006-01-02"
	text := strings.NewReplacer("2026-11-01", time.Now().Format(day), "2027-03-31", time.Now().AddDate(0, 0, 90).Format(day)).Replace(policy[1])
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, "forbear check policy.yaml"); err == nil {
		t.Errorf("the policy passes without its waiver:\n%s", out)
	}
	var out []byte
	for _, m := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(session[1], -1) {
		var err error
		if out, err = shell(t, dir, m[1]); err != nil {
			t.Fatalf("%s: %v\n%s", m[1], err, out)
		}
	}
	if !strings.Contains(string(out), "\n0 errors, 0 warnings, 0 notes\n") {
		t.Errorf("the waiver does not count:\n%s", out)
	}
}
