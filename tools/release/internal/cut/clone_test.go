package cut

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/tools/release/internal/run"
	"github.com/forbear-go/forbear/tools/release/internal/workspace"
)

// repository makes one of a module, whose own settings say who commits.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.work": "go 1.26.0\n\nuse .\n\nreplace " + workspace.Prefix + " v0.0.0 => ./\n",
		"go.mod":  "module " + workspace.Prefix + "\n\ngo 1.26.0\n",
		"a.go":    "package forbear\n\nfunc F() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "init", "--quiet", "--initial-branch", "main")
	git(t, root, "config", "user.name", "who releases")
	git(t, root, "config", "user.email", "who@example.com")
	git(t, root, "add", "--all")
	git(t, root, "commit", "--quiet", "--message", "one")
	git(t, root, "commit", "--quiet", "--allow-empty", "--message", "two")
	return root
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := run.Git(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is committed in the clone is of the one who releases, and stays there: also
// where the release is begun by a hook, which tells git of another repository.
func TestCloneIsApart(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	root := repository(t)
	before := git(t, root, "rev-parse", "HEAD")
	t.Setenv("GIT_DIR", filepath.Join(root, ".git"))
	t.Setenv("GIT_INDEX_FILE", filepath.Join(root, ".git", "index"))
	c := &candidate{root: root}
	if err := c.clone(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	git(t, c.w.Root, "commit", "--quiet", "--allow-empty", "--message", "release")
	if who := git(t, c.w.Root, "log", "-1", "--format=%an %ae %s"); who != "who releases who@example.com release" {
		t.Errorf("the commit is %q", who)
	}
	if after := git(t, root, "rev-parse", "HEAD"); after != before {
		t.Error("the commit came into the repository")
	}
}

// A clone without its history need not know the last version, which a release is held to.
func TestShallow(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	from, root := repository(t), filepath.Join(t.TempDir(), "shallow")
	git(t, from, "tag", "v0.3.0", "HEAD~1")
	git(t, from, "clone", "--quiet", "--depth", "1", "file://"+from, root)
	w, err := workspace.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before(t.Context(), w, "v0.2.0"); err == nil || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("a shallow clone: %v", err)
	}
	git(t, root, "fetch", "--quiet", "--unshallow", "--tags")
	if _, err := before(t.Context(), w, "v0.2.0"); err == nil || !strings.Contains(err.Error(), "v0.3.0") {
		t.Errorf("the whole of it: %v", err)
	}
}

// Who commits on main while a release is being tested, or leaves it, has the release
// refused, and finds no tag of it.
func TestTakeAllOrNothing(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	root := repository(t)
	c := &candidate{root: root, version: "v0.1.0", log: t.Output()}
	if err := c.clone(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	git(t, c.w.Root, "commit", "--quiet", "--allow-empty", "--message", "release")
	git(t, c.w.Root, "tag", "--annotate", "--message", "release", "v0.1.0")
	c.head = git(t, c.w.Root, "rev-parse", "HEAD")
	git(t, root, "commit", "--quiet", "--allow-empty", "--message", "meanwhile")
	before := git(t, root, "for-each-ref")
	if err := c.take(t.Context()); err == nil {
		t.Error("it was taken over what came meanwhile")
	}
	if after := git(t, root, "for-each-ref"); after != before {
		t.Errorf("it left\n%s", after)
	}
	git(t, root, "reset", "--quiet", "--hard", "HEAD~1")
	git(t, root, "checkout", "--quiet", "-b", "other")
	before = git(t, root, "for-each-ref")
	if err := c.take(t.Context()); err == nil || !strings.Contains(err.Error(), "git switch main") || git(t, root, "for-each-ref") != before {
		t.Errorf("with another branch in the checkout: %v\n%s", err, git(t, root, "for-each-ref"))
	}
	git(t, root, "checkout", "--quiet", "main")
	if err := c.take(t.Context()); err != nil || git(t, root, "rev-parse", "v0.1.0^{commit}", "main") != c.head+"\n"+c.head {
		t.Errorf("without it: %v\n%s", err, git(t, root, "for-each-ref"))
	}
}
