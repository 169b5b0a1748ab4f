//go:build unix

package find

import (
	"os"
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
