package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if got := invoke(t, "", "forrst", "migrate", "clean.json"); got.code != exitOK || got.out+got.errors != "" {
		t.Errorf("nothing to do: %+v", got)
	}
	got := invoke(t, "", "forrst", "migrate", "--dry-run", "a.json")
	if got.code != exitFound || !strings.Contains(got.out, "--- a.json\n+++ a.json\n@@ ") || !strings.Contains(got.out, "\n+  \"extensions\": [\n") {
		t.Errorf("dry run: %+v", got)
	}
	if now, _ := os.ReadFile("a.json"); string(now) != old {
		t.Error("the dry run wrote")
	}
	got = invoke(t, "", "forrst", "migrate", "a.json", "b.md", "none.json")
	if got.code != exitUsage || got.out != "" || !strings.Contains(got.errors, "b.md:11: the text speaks") || !strings.Contains(got.errors, "none.json") {
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
	if got := invoke(t, "", "forrst", "migrate", "a.json"); got.code != exitOK {
		t.Errorf("a second run: %+v", got)
	}
	for _, args := range []string{"forrst", "forrst move a.json", "forrst migrate", "forrst migrate --fast a.json", "forrst migrate ."} {
		if got := invoke(t, "", words(args)...); got.code != exitUsage || got.errors == "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
