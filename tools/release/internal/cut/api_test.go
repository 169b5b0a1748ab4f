package cut

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/tools/release/internal/api"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// What breaks users waits for a minor version, and from v1 on is never released; it has
// to be written down, and the next version begins without it.
func TestBreakingChange(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	root := repository(t)
	git(t, root, "tag", "v0.3.0")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", "package forbear\n")
	write("CHANGELOG.md", "## [Unreleased]\n\n- F is gone.\n")
	w, err := workspace.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	const gone = workspace.Prefix + ": F: removed"
	compared := func(last, version string) (*candidate, error) {
		c := &candidate{root: root, last: last, version: version, log: t.Output()}
		return c, c.compare(t.Context(), w)
	}
	if _, err := compared("v0.3.0", "v0.3.1"); err == nil || !strings.Contains(err.Error(), "promises") || !strings.Contains(err.Error(), gone) {
		t.Errorf("in a patch version: %v", err)
	}
	if _, err := compared("v0.3.0", "v0.4.0"); err == nil || !strings.Contains(err.Error(), "make api-update") {
		t.Errorf("unsaid, in a minor version: %v", err)
	}
	if err := (api.Changes{Breaking: []string{gone}}).Write(root); err != nil {
		t.Fatal(err)
	}
	git(t, root, "tag", "v1.3.0", "v0.3.0")
	if _, err := compared("v1.3.0", "v1.4.0"); err == nil || !strings.Contains(err.Error(), "promises") {
		t.Errorf("in a minor version of v1: %v", err)
	}
	c, err := compared("v0.3.0", "v0.4.0")
	if err != nil {
		t.Fatal(err)
	}
	git(t, root, "add", "--all")
	git(t, root, "commit", "--quiet", "--message", "F is gone")
	if err := c.clone(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := c.commit(t.Context(), Options{Forgetful: true}); err != nil {
		t.Fatal(err)
	}
	if left := git(t, c.w.Root, "ls-files", "api"); left != "" {
		t.Errorf("the next version begins with %s", left)
	}
	if err := c.writeNotes(); err != nil {
		t.Fatal(err)
	}
	if notes, err := os.ReadFile(filepath.Join(root, "bin/release/notes.md")); err != nil || !strings.Contains(string(notes), "### May break what uses v0.3.0\n\n- `"+gone+"`\n") {
		t.Errorf("%v, the notes say\n%s", err, notes)
	}
}
