package console

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A vendored script that someone has edited, or renewed without its checksum, fails here.
func TestVendoredFiles(t *testing.T) {
	const dir = "static/vendor"
	text, err := os.ReadFile(filepath.Join(dir, "VENDOR.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "VENDOR.md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), e.Name()); !strings.Contains(string(text), line) {
			t.Errorf("VENDOR.md has no line %q", line)
		}
	}
	if files, lines := len(entries)-1, strings.Count(string(text), "\n    ")-2; files < 4 || files != lines {
		t.Errorf("%d files, VENDOR.md has the checksums of %d", files, lines)
	}
}
