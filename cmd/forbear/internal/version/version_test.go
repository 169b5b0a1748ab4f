//forbear:plain nothing runs at once
package version

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli"
	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

func TestVersion(t *testing.T) {
	text := clitest.Run(t, Command(), "")
	if text.Code != cli.ExitOK || !strings.HasPrefix(text.Out, "forbear ") || !strings.Contains(text.Out, runtime.Version()) {
		t.Errorf("text: %+v", text)
	}
	var b Build
	got := clitest.Run(t, Command(), "", "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &b); err != nil || b != Read() || b.Version == "" || b.Platform == "" {
		t.Errorf("json: %v, %+v", err, got)
	}
	if got := clitest.Run(t, Command(), "", "-o", "yaml"); got.Code != cli.ExitUsage || got.Out != "" {
		t.Errorf("yaml: %+v", got)
	}
}

func TestString(t *testing.T) {
	b := Build{Version: "v1.2.3", Go: "go1.26.8", Platform: "linux/amd64"}
	if got, want := b.String(), "forbear v1.2.3 (go1.26.8, linux/amd64)"; got != want {
		t.Errorf("installed: got %q, want %q", got, want)
	}
	b.Revision, b.Modified = "0123456789abcdef0123456789abcdef01234567", true
	if got, want := b.String(), "forbear v1.2.3 (commit 0123456789ab, modified, go1.26.8, linux/amd64)"; got != want {
		t.Errorf("from a checkout: got %q, want %q", got, want)
	}
}
