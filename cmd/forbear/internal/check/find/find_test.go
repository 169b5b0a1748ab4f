//forbear:plain nothing runs at once
package find

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func wanted(path string) bool { return strings.HasSuffix(path, ".yaml") }

// names are those of the files that were found.
func names(f *Files) (all []string) {
	for _, file := range f.All {
		all = append(all, filepath.ToSlash(file.Name))
	}
	return all
}

// Ignore files mean what .gitignore means: the last pattern counts, one with a slash
// is bound to its folder, and a slash at the end is for folders.
func TestIgnore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ignores map[string]string
		want    string
	}{
		{"none", nil, "a.yaml b/a.yaml b/c/d.yaml e[1]/a.yaml"},
		{"by name at any depth", map[string]string{".forbearignore": "a.yaml\n"}, "b/c/d.yaml"},
		{"bound", map[string]string{".forbearignore": "/a.yaml\n"}, "b/a.yaml b/c/d.yaml e[1]/a.yaml"},
		{"a folder", map[string]string{".forbearignore": "c/\n"}, "a.yaml b/a.yaml e[1]/a.yaml"},
		{"a file is no folder", map[string]string{".forbearignore": "a.yaml/\n"}, "a.yaml b/a.yaml b/c/d.yaml e[1]/a.yaml"},
		{"stars", map[string]string{".forbearignore": "b/**/*.yaml\n"}, "a.yaml e[1]/a.yaml"},
		{"kept", map[string]string{".forbearignore": "*.yaml\n!b/a.yaml\n"}, "b/a.yaml"},
		{"comments", map[string]string{".forbearignore": "# a.yaml\n\n  \n"}, "a.yaml b/a.yaml b/c/d.yaml e[1]/a.yaml"},
		{"below", map[string]string{"b/.forbearignore": "a.yaml\n"}, "a.yaml b/c/d.yaml e[1]/a.yaml"},
		{"below a folder with brackets", map[string]string{"e[1]/.forbearignore": "/a.yaml\n"}, "a.yaml b/a.yaml b/c/d.yaml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"a.yaml": "", "b/a.yaml": "", "b/c/d.yaml": "", "e[1]/a.yaml": "", ".git/a.yaml": "", "b/node_modules/a.yaml": ""})
			write(t, dir, tt.ignores)
			t.Chdir(dir)
			f := Of([]string{"."}, wanted)
			if got := strings.Join(names(f), " "); got != tt.want || len(f.Missing) > 0 {
				t.Errorf("got %s (%v), want %s", got, f.Missing, tt.want)
			}
		})
	}
}

// Each file comes once, a link to a folder is not followed, and what is not there is
// told.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/x.yaml": "", "a/y.txt": "", "b/z.yaml": ""})
	t.Chdir(dir)
	if err := os.Symlink("../a", "b/loop"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../a/x.yaml", "b/x.yaml"); err != nil {
		t.Fatal(err)
	}
	f := Of([]string{"a", "./a/x.yaml", "b", "a/y.txt", "none.yaml", "n*.yaml", "[", "-"}, wanted)
	if got, want := names(f), []string{"a/x.yaml", "b/x.yaml", "b/z.yaml", "a/y.txt", "-"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if f.All[0].Met || !f.All[1].Met {
		t.Errorf("got %+v: a file that is named too was not just met", f.All[:2])
	}
	var missing []string
	for _, m := range f.Missing {
		missing = append(missing, m.Name+": "+m.Err.Error())
	}
	if want := []string{"none.yaml: no such file or directory", "n*.yaml: no file matches: check the path", "[: syntax error in pattern"}; !slices.Equal(missing, want) {
		t.Errorf("got %q, want %q", missing, want)
	}
	write(t, dir, map[string]string{"c/.forbearignore": "[\n", "c/a.yaml": ""})
	if f := Of([]string{"c"}, wanted); len(f.Missing) != 1 || !strings.Contains(f.Missing[0].Err.Error(), `.forbearignore:1: "**/[" is not a pattern`) {
		t.Errorf("got %v", f.Missing)
	}
}

func TestRead(t *testing.T) {
	if data, err := Read(Stdin, strings.NewReader("abcdef"), 3); string(data) != "abcd" || err != nil {
		t.Errorf("got %q, %v: want one byte more than the limit", data, err)
	}
	if _, err := Read("none", nil, 3); err == nil || strings.Contains(err.Error(), "none") {
		t.Errorf("got %v, want a cause without the name", err)
	}
}
