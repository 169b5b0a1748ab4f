package driver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout is a module in a git repository, whose files are committed.
func checkout(t *testing.T, files map[string]string, init ...string) (dir string) {
	t.Helper()
	dir = module(t, files)
	for _, args := range [][]string{
		append([]string{"init", "-q"}, init...),
		{"add", "."},
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "first"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// TestSince: only files that differ from the revision are shown, also where the way
// to the checkout leads through a symbolic link.
func TestSince(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		dir := checkout(t, map[string]string{"m.go": fixedRetry}, "--object-format="+format)
		if code, out, errs := lintIn(t, dir, "--since", "HEAD"); code != ExitPass || out != "no findings in files of 1 package that differ from HEAD\n" {
			t.Errorf("unchanged: got %d\n%s%s", code, out, errs)
		}
		write(t, dir, "m.go", strings.ReplaceAll(fixedRetry, "\n", "\r\n"))
		if code, out, errs := lintIn(t, dir, "--since", "HEAD"); code != ExitPass {
			t.Errorf("other line ends: got %d\n%s%s", code, out, errs)
		}
		write(t, dir, "n.go", strings.ReplaceAll(fixedRetry, "Fetch", "Other"))
		link := filepath.Join(t.TempDir(), "checkout")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{dir, link} {
			if code, out, _ := lintIn(t, at, "--since", "HEAD"); code != ExitFindings || !strings.Contains(out, "n.go:10") || strings.Contains(out, "m.go:10") {
				t.Errorf("an untracked file: got %d and %q, want n.go alone", code, out)
			}
		}
		write(t, dir, "m.go", fixedRetry+"\nvar more = 1\n")
		if _, out, _ := lintIn(t, dir, "--since", "HEAD"); !strings.Contains(out, "m.go:10") {
			t.Errorf("a changed file: got %q, want m.go too", out)
		}
		if code, _, errs := lintIn(t, dir, "--since", "no-such-revision"); code != ExitUnjudged || !strings.Contains(errs, "git has no revision") {
			t.Errorf("unknown revision: got %d, %q, want %d", code, errs, ExitUnjudged)
		}
	}
}

// TestSinceRunsNothing: a checkout may be anyone's, and what its configuration names
// is not run, neither by git nor by the go command, which asks git of a program.
func TestSinceRunsNothing(t *testing.T) {
	dir := checkout(t, map[string]string{
		"m.go": strings.Replace(fixedRetry, "package m", "package main", 1) + "\nfunc main() {}\n", ".gitattributes": "*.go filter=evil diff=evil\n",
	})
	t.Setenv("GOENV", "off") // it may switch off what is tested
	ran := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat </dev/null\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	for _, c := range []string{
		"[core]\nfsmonitor", "[core]\neditor", "[core]\npager", "[core]\nsshCommand", "[core]\naskPass", "[diff]\nexternal", "[diff \"evil\"]\ncommand",
		"[diff \"evil\"]\ntextconv", "[filter \"evil\"]\nclean", "[filter \"evil\"]\nsmudge", "[filter \"evil\"]\nprocess", "[alias]\nls-tree",
		"[gpg]\nprogram", "[pager]\nls-tree", "[remote \"origin\"]\nuploadpack",
	} {
		config.WriteString(c + " = " + evil + "\n")
	}
	config.WriteString("[log]\nshowSignature = true\n[remote \"origin\"]\nurl = ext::" + evil + "\npromisor = true\n[extensions]\npartialClone = origin\n[protocol \"ext\"]\nallow = always\n")
	hooks := filepath.Join(dir, ".git", "hooks")
	f, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(config.String()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "pre-commit", "reference-transaction"} {
		if err := os.Symlink(evil, filepath.Join(hooks, hook)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "m.go", read(t, dir, "m.go")+"\n")
	for _, rev := range []string{"HEAD", "0123456789012345678901234567890123456789"} {
		code, out, errs := lintIn(t, dir, "--since", rev)
		if want := map[bool]int{true: ExitFindings, false: ExitUnjudged}[rev == "HEAD"]; code != want {
			t.Errorf("%s: got %d, want %d\n%s%s", rev, code, want, out, errs)
		}
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("ran\n%s", text)
	}
	// The trap works.
	cmd := exec.CommandContext(t.Context(), "git", "status")
	cmd.Dir = dir
	_ = cmd.Run()
	if _, err := os.Stat(ran); err != nil {
		t.Error("git status runs nothing either: the test shows nothing")
	}
}
