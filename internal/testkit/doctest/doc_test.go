package doctest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, seen from this folder.
const root = "../../.."

// walk calls f for each file of the repository, but not for what is built or
// belongs to git.
func walk(t *testing.T, f func(name string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.IsDir():
			f(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	inTicks  = regexp.MustCompile("`([^`]+)`")
	aTest    = regexp.MustCompile(`^(Test|Fuzz|Example)\w+$`)
	aFile    = regexp.MustCompile(`^[\w./-]+\.go$`)
	aLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced   = regexp.MustCompile("(?s)```.*?```")
)

// TestRulesNameWhatExists holds docs/rules.md to the code: each file and each
// test that it names is there, and each row names at least one of both.
func TestRulesNameWhatExists(t *testing.T) {
	tests := testNames(t)
	rows := 0
	for i, line := range strings.Split(read(t, "docs/rules.md"), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| rule") || strings.HasPrefix(line, "| question") {
			continue
		}
		rows++
		files, named := 0, 0
		for _, m := range inTicks.FindAllStringSubmatch(line, -1) {
			switch word := m[1]; {
			case aFile.MatchString(word):
				files++
				if _, err := os.Stat(filepath.Join(root, word)); err != nil {
					t.Errorf("docs/rules.md:%d: no file %s", i+1, word)
				}
			case aTest.MatchString(word):
				named++
				if !tests[word] {
					t.Errorf("docs/rules.md:%d: no test %s", i+1, word)
				}
			}
		}
		if files == 0 || named == 0 {
			t.Errorf("docs/rules.md:%d: the row names %d files and %d tests, want one of each at least", i+1, files, named)
		}
	}
	if rows < 20 {
		t.Errorf("docs/rules.md has %d rows: the table was not found", rows)
	}
}

// testNames returns the names of all tests.
func testNames(t *testing.T) map[string]bool {
	tests := map[string]bool{}
	walk(t, func(name string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(read(t, name), -1) {
				tests[m[1]] = true
			}
		}
	})
	return tests
}

// So are the tests that the page on published tests names; it counts what it can itself.
func TestPublishedNamesWhatExists(t *testing.T) {
	tests, named := testNames(t), 0
	for line := range strings.Lines(read(t, "docs/published-tests.md")) {
		for _, m := range inTicks.FindAllStringSubmatch(line, -1) {
			if !aTest.MatchString(m[1]) {
				continue
			}
			named++
			if !tests[m[1]] {
				t.Errorf("docs/published-tests.md: no test %s", m[1])
			}
		}
	}
	if named == 0 {
		t.Error("docs/published-tests.md names no test: the table was not found")
	}
}

// TestLinksLeadSomewhere checks the relative links of all documents.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	walk(t, func(name string) {
		if !strings.HasSuffix(name, ".md") {
			return
		}
		for _, m := range aLink.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, name), ""), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(root, path.Join(path.Dir(name), target))); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1])
			}
		}
	})
	if links == 0 {
		t.Error("no link was found")
	}
}
