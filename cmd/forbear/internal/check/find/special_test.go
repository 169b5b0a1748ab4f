//go:build unix

package find

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A link to a folder that is named stands for the folder. Its ignore file counts.
func TestLinkedFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, map[string]string{"real/a.yaml": "", "real/b.yaml": "", "real/.forbearignore": "/b.yaml\n"})
	if err := os.Symlink("real", "link"); err != nil {
		t.Fatal(err)
	}
	for _, operand := range []string{"link", "link/"} {
		f := Of([]string{operand}, wanted)
		if got := names(f); !slices.Equal(got, []string{"link/a.yaml"}) || len(f.Missing) > 0 || f.Ignored != 1 {
			t.Errorf("%s: got %v, %+v", operand, got, f)
		}
	}
}

// An ignore file that is a pipe would be waited for without an end.
func TestIgnoreFileIsNoPipe(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, map[string]string{"a.yaml": ""})
	if err := syscall.Mkfifo(IgnoreFile, 0o600); err != nil {
		t.Fatal(err)
	}
	f := Of([]string{"."}, wanted)
	if len(f.Missing) != 1 || !strings.Contains(f.Missing[0].Err.Error(), "not a regular file") {
		t.Errorf("got %+v", f)
	}
}

// What a walk does not look into is told: links to folders elsewhere, links that lead
// nowhere, pipes, and how many folders were ignored. Links in circles have an end.
func TestPassedOver(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"elsewhere/a.yaml": "", "tree/a.yaml": "", "tree/b/a.yaml": "", "tree/c/a.yaml": "", "tree/.forbearignore": "c/\nold*\n"})
	t.Chdir(filepath.Join(dir, "tree"))
	for link, target := range map[string]string{"out": "../elsewhere", "self": ".", "b/up": "..", "gone.yaml": "none.yaml", "gone.txt": "none.txt", "old.yaml": "none.yaml", "oldout": "../elsewhere"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("pipe.yaml", 0o600); err != nil {
		t.Fatal(err)
	}
	told := func(all []Missing) (names []string) {
		for _, m := range all {
			names = append(names, m.Name)
		}
		return names
	}
	f := Of([]string{"."}, wanted)
	if got, want := told(f.Passed), []string{"out", "pipe.yaml"}; !slices.Equal(got, want) {
		t.Errorf("passed over %v, want %v", got, want)
	}
	if got, want := told(f.Missing), []string{"gone.yaml"}; !slices.Equal(got, want) {
		t.Errorf("missing %v, want %v", got, want)
	}
	if f.IgnoredFolders != 1 {
		t.Errorf("%d folders ignored, want 1", f.IgnoredFolders)
	}
	if got, want := names(f), []string{"a.yaml", "b/a.yaml"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	f = Of([]string{"**/a.yaml"}, wanted)
	if got, want := names(f), []string{"a.yaml", "b/a.yaml", "c/a.yaml"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
