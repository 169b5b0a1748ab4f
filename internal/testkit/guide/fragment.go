package guide

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/roottest"
)

// Fragments finds each Go block of the guide of that name in the program, a file of the
// test's folder: as lines one after the other, indentation aside.
func Fragments(t *testing.T, name, program string) {
	t.Helper()
	doc := read(t, roottest.Path(filepath.Join("docs", "guides", name+".md")))
	blocks := strings.Split(doc, "```go\n")[1:]
	if len(blocks) == 0 {
		t.Errorf("the guide %s has no Go", name)
	}
	lines := trimmed(read(t, program))
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		if !strings.Contains(lines, trimmed(block)) {
			t.Errorf("the guide %s has lines that are not in %s, or not one after the other:\n%s", name, program, block)
		}
	}
}

// trimmed returns the text without the indentation of its lines.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}
