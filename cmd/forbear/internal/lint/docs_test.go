//forbear:plain nothing runs at once
package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

var lintLine = regexp.MustCompile(`(?m)^(?:        run: |    - )forbear lint( .*)?$`)

// The commands of the CI examples run as they stand, on a clean module: they pass,
// each in the order of the file. The guides' own are run by the test of all guides.
func TestLintDocuments(t *testing.T) {
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples/ci/github.yml", "examples/ci/gitlab.yml"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := lintLine.FindAllStringSubmatch(string(data), -1)
		if len(lines) == 0 {
			t.Errorf("%s has no command", name)
		}
		dir := lintModule(t, lintPolicyText)
		clean := "package p\n\nfunc Add(a, b int) int { return a + b }\n"
		for file, text := range map[string]string{
			"pay/pay.go": strings.Replace(clean, "package p", "package pay", 1), "search/search.go": strings.Replace(clean, "package p", "package search", 1),
			"signers": "", "internal/p/p.go": clean,
		} {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "first"}, {"update-ref", "refs/remotes/origin/main", "HEAD"}} {
			git := exec.CommandContext(t.Context(), "git", args...)
			git.Dir = dir
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		t.Chdir(dir)
		for _, l := range lines {
			command, _, _ := strings.Cut(l[1], " # ")
			if r := clitest.Run(t, Command(), "", strings.Fields(command)...); r.Code != cli.ExitOK {
				t.Errorf("%s: forbear lint%s: got %d\n%s%s", name, command, r.Code, r.Out, r.Errors)
			}
		}
		t.Chdir(home)
	}
}
