package doctest

import (
	"strings"
	"testing"
)

// TestGuidesNameTestsThatExist holds the tables of the guides to the code: a test that
// one names is there.
func TestGuidesNameTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	walk(t, func(name string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range testFunc.FindAllStringSubmatch(read(t, name), -1) {
				tests[m[1]] = true
			}
		}
	})
	walk(t, func(name string) {
		if !strings.HasPrefix(name, "docs/guides/") || !strings.HasSuffix(name, ".md") {
			return
		}
		for i, line := range strings.Split(read(t, name), "\n") {
			if !strings.HasPrefix(line, "| ") {
				continue
			}
			for _, m := range inTicks.FindAllStringSubmatch(line, -1) {
				if !aTest.MatchString(m[1]) {
					continue
				}
				if !tests[m[1]] {
					t.Errorf("%s:%d: no test %s", name, i+1, m[1])
				}
			}
		}
	})
}

// TestEachGuideIsListed finds each guide in the list of them.
func TestEachGuideIsListed(t *testing.T) {
	list := read(t, "docs/guides/README.md")
	walk(t, func(name string) {
		guide, ok := strings.CutPrefix(name, "docs/guides/")
		if ok && strings.HasSuffix(guide, ".md") && guide != "README.md" && !strings.Contains(list, "]("+guide+")") {
			t.Errorf("docs/guides/README.md does not list %s", guide)
		}
	})
}
