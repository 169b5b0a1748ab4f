package forrst

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func TestForrstMigrate(t *testing.T) {
	t.Chdir(t.TempDir())
	const old = "{\n  \"id\": \"r\",\n  \"result\": null,\n  \"errors\": [{\"code\": \"UNAVAILABLE\", \"message\": \"m\", \"retryable\": true}]\n}\n"
	const page = "# Errors\n\n```json\n" + old + "```\n\nThe field `retryable` is old.\n"
	for name, text := range map[string]string{"a.json": old, "b.md": page, "clean.json": "{}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if got := clitest.Run(t, Command(), "", "migrate", "clean.json"); got.Code != cli.ExitOK || got.Out+got.Errors != "" {
		t.Errorf("nothing to do: %+v", got)
	}
	got := clitest.Run(t, Command(), "", "migrate", "--dry-run", "a.json")
	if got.Code != cli.ExitFound || !strings.Contains(got.Out, "--- a.json\n+++ a.json\n@@ ") || !strings.Contains(got.Out, "\n+  \"extensions\": [\n") {
		t.Errorf("dry run: %+v", got)
	}
	if now, _ := os.ReadFile("a.json"); string(now) != old {
		t.Error("the dry run wrote")
	}
	got = clitest.Run(t, Command(), "", "migrate", "a.json", "b.md", "none.json")
	if got.Code != cli.ExitUsage || got.Out != "" || !strings.Contains(got.Errors, "b.md:11: the text speaks") || !strings.Contains(got.Errors, "none.json") {
		t.Errorf("three files: %+v", got)
	}
	for _, name := range []string{"a.json", "b.md"} {
		now, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(now), `"retryable"`) || !strings.Contains(string(now), "urn:forrst:ext:retry") {
			t.Errorf("%s: %v\n%s", name, err, now)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if got := clitest.Run(t, Command(), "", "migrate", "a.json"); got.Code != cli.ExitOK {
		t.Errorf("a second run: %+v", got)
	}
	for _, args := range []string{"", "move a.json", "migrate", "migrate --fast a.json", "migrate ."} {
		if got := clitest.Run(t, Command(), "", clitest.Words(args)...); got.Code != cli.ExitUsage || got.Errors == "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
