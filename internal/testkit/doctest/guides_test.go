package doctest

import (
	"strings"
	"testing"
)

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
