package driver

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// TestTreeHasFullJitter holds forbear to its own FB1003: no module of the
// workspace waits with equal jitter, at any confidence, and no directive, waiver
// or setting excuses one.
func TestTreeHasFullJitter(t *testing.T) {
	ringtest.OnlyNightly(t, "make self looks at the tree with the usual confidence")
	work, err := filepath.Abs("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOWORK", work)
	t.Setenv("GOFLAGS", "-trimpath")
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}")
	list.Dir = filepath.Dir(work)
	dirs, err := list.Output()
	if err != nil {
		t.Fatalf("list the modules of %s: %v", work, err)
	}
	everything := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(everything, []byte("confidence: low\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	modules := 0
	for dir := range strings.Lines(string(dirs)) {
		modules++
		for _, f := range findingsIn(t, strings.TrimSpace(dir), "--all", "--show-suppressed", "--config", everything) {
			if f.ID == "FB1003" {
				t.Errorf("%s:%d: %s (confidence %s)", f.File, f.Line, f.Message, f.Confidence)
			}
		}
	}
	if modules < 2 {
		t.Errorf("got %d modules, want those of the workspace", modules)
	}
}

// shown is what this test reads of a finding in JSON.
type shown struct {
	ID, File, Message, Confidence string
	Line                          int
}

// findingsIn runs the linter over a module as its user would.
func findingsIn(t *testing.T, dir string, args ...string) []shown {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"-C", dir, "-q", "-o", "json"}, args...)
	if code := Main(t.Context(), nil, args, &out, &errs); code == ExitUnjudged {
		t.Fatalf("%s was not judged: %s", dir, errs.String())
	}
	var report struct{ Findings []shown }
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report.Findings
}
