package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkout writes a workspace of three modules, of which example is not released.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./cmd/forbear\n\t./example\n\t./lint\n)\n\nreplace (\n" +
			"\t" + Prefix + " v0.0.0 => ./\n\t" + Prefix + "/cmd/forbear v0.0.0 => ./cmd/forbear\n\t" + Prefix + "/lint v0.0.0 => ./lint\n)\n",
		"go.mod":             "module " + Prefix + "\n\ngo 1.26\n",
		"lint/go.mod":        "module " + Prefix + "/lint\n\ngo 1.26.0\n\nrequire " + Prefix + " v0.0.0\n",
		"lint/go.sum":        "example.com/a v1.0.0 h1:a=\nexample.com/a v1.0.0/go.mod h1:b=\n",
		"example/go.mod":     "module " + Prefix + "/example\n\ngo 1.26.0\n\nrequire " + Prefix + "/lint v0.0.0\n\nrequire " + Prefix + " v0.0.0 // indirect\n",
		"cmd/forbear/go.mod": "module " + Prefix + "/cmd/forbear\n\ngo 1.26.0\n\nrequire (\n\t" + Prefix + " v0.0.0\n\t" + Prefix + "/lint v0.0.0\n)\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, root string) *Workspace {
	t.Helper()
	w, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func text(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The command comes before lint in go.work, and behind it here.
func TestRead(t *testing.T) {
	w := read(t, checkout(t))
	var tags []string
	for _, m := range w.Released() {
		tags = append(tags, m.Tag("v1.2.3"))
	}
	if got, want := strings.Join(tags, " "), "v1.2.3 lint/v1.2.3 cmd/forbear/v1.2.3"; got != want || w.Version != "v0.0.0" {
		t.Errorf("got %s at %s, want %s", got, w.Version, want)
	}
}

func TestRequire(t *testing.T) {
	root := checkout(t)
	for _, version := range []string{"v0.1.0", "v0.1.1"} { // a second release has other versions to replace
		w := read(t, root)
		if err := w.Require(version, []string{".", "lint", "example", "cmd/forbear"}); err != nil {
			t.Fatal(err)
		}
		sums := map[string]Sum{Prefix: {"h1:zip=", "h1:mod="}, Prefix + "/lint": {"h1:lint=", "h1:lintmod="}}
		for _, m := range w.Modules {
			if err := w.WriteSums(m, sums); err != nil {
				t.Fatal(err)
			}
		}
		if again := read(t, root); again.Version != version || len(again.Released()) != 3 {
			t.Errorf("%s: go.work says %+v", version, again)
		}
		want := "example.com/a v1.0.0 h1:a=\nexample.com/a v1.0.0/go.mod h1:b=\n" + Prefix + " " + version + " h1:zip=\n" + Prefix + " " + version + "/go.mod h1:mod=\n"
		if got := text(t, root, "lint", "go.sum"); got != want {
			t.Errorf("%s: go.sum of lint is\n%swant\n%s", version, got, want)
		}
	}
	if got := text(t, root, "example", "go.mod"); strings.Count(got, "v0.1.1") != 2 || !strings.Contains(got, Prefix+" v0.1.1 // indirect") {
		t.Errorf("example requires\n%s", got)
	}
}

// What the go command makes of a module alone comes back without what was lent to it.
func TestAlone(t *testing.T) {
	root, dir := checkout(t), t.TempDir()
	w := read(t, root)
	lint := w.Modules[1]
	name, err := w.Alone(lint, dir)
	if err != nil {
		t.Fatal(err)
	}
	lent := text(t, name)
	if !strings.Contains(lent, Prefix+" => "+root) || strings.Contains(lent, Prefix+"/lint =>") {
		t.Errorf("%s has\n%s", lint.Path, lent)
	}
	found := strings.Replace(lent, Prefix+" v0.0.0\n", Prefix+" v0.0.0-00010101000000-000000000000\n", 1)
	if found == lent {
		t.Fatalf("nothing to replace in\n%s", lent)
	}
	if err := os.WriteFile(name, []byte(found), 0o644); err != nil {
		t.Fatal(err)
	}
	before := text(t, root, "lint", "go.mod")
	if err := w.Adopt(lint, dir); err != nil {
		t.Fatal(err)
	}
	if got := text(t, root, "lint", "go.mod"); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), nil, 0o644); err != nil { // nothing is needed any more
		t.Fatal(err)
	}
	if err := w.Adopt(lint, dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadFile(filepath.Join(root, "lint", "go.sum")); !os.IsNotExist(err) {
		t.Errorf("of no sums there is left %q, %v", left, err)
	}
}

// A replace line of a module would do for the workspace, and for no one else.
func TestReplaceLine(t *testing.T) {
	root := checkout(t)
	name := filepath.Join(root, "lint", "go.mod")
	if err := os.WriteFile(name, []byte(text(t, name)+"\nreplace "+Prefix+" => ../\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(root); err == nil || !strings.Contains(err.Error(), "replace line") {
		t.Errorf("got %v", err)
	}
}
